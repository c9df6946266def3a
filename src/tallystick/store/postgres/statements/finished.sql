-- finished: those of the listed jobs that have ended.
SELECT * FROM job_rows
 WHERE job_id = ANY ($1::text[]) AND completed_at IS NOT NULL
