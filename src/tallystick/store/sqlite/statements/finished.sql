-- finished: those of the listed jobs that have ended.
SELECT * FROM job_rows
 WHERE job_id IN (SELECT wanted.value FROM json_each(?1) AS wanted) AND completed_at IS NOT NULL
