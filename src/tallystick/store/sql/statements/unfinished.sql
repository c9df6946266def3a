-- unfinished: a page of the jobs that have not ended and are not held, in their order.
-- takes: after text, limit int
SELECT job_id
  FROM jobs
 WHERE job_id > :after AND completed_at IS NULL AND hold IS NULL
 ORDER BY job_id
 LIMIT :limit
