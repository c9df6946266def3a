-- finished: those of the listed jobs that have ended; one that is not there has a row of nulls.
SELECT wanted.job_id, j.*
  FROM unnest($1::text[]) AS wanted (job_id)
  LEFT JOIN job_rows AS j ON j.job_id = wanted.job_id
 WHERE j.job_id IS NULL OR j.completed_at IS NOT NULL
