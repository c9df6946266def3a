-- waiting_of_keys: the due jobs of a key and priority that have not begun, the longest waiting first.
-- takes: queue, limit_key, priority, wall, handlers list
SELECT job_id, limit_key, attempt = 0, ready_at
  FROM jobs @indexed(jobs_of_key)
 WHERE queue = :queue AND limit_key = :limit_key AND limit_key IS NOT NULL AND began_in IS NULL AND priority = :priority
   AND ready_at <= :wall AND ready_at IS NOT NULL AND hold IS NULL AND @part(runnable, jobs)
 ORDER BY ready_at
