-- unfinished: a page of the jobs that have not ended, are not held and go on by a worker of ours, in their order.
-- takes: after text, limit int
SELECT job_id
  FROM jobs
 WHERE job_id > :after AND completed_at IS NULL AND hold IS NULL AND kind <> 'protocol'
 ORDER BY job_id
 LIMIT :limit
