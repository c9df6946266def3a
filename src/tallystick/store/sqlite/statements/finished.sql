-- finished: those of the listed jobs that have ended; one that is not there has a row of nulls.
SELECT wanted.value, j.*
  FROM json_each(?1) AS wanted
  LEFT JOIN job_rows AS j ON j.job_id = wanted.value
 WHERE j.job_id IS NULL OR j.completed_at IS NOT NULL
