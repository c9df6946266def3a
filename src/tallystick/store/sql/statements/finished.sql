-- finished: those of the listed jobs that have ended; one that is not there has a row of nulls.
-- takes: jobs list
SELECT wanted.value, @names(JobRow, j)
  FROM :jobs
  LEFT JOIN jobs AS j ON j.job_id = wanted.value
 WHERE j.job_id IS NULL OR j.completed_at IS NOT NULL
