-- job: one job, as people look at it.
SELECT * FROM job_rows
 WHERE job_id = ?1
