-- picture_pasts: what a lost attempt at a job is judged by. No row: there is no such job.
SELECT created_at, options, (SELECT count(*) FROM futile_attempts WHERE futile_attempts.job_id = jobs.job_id)
  FROM jobs
 WHERE job_id = ?1
