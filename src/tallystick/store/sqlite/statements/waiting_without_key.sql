-- waiting_without_key: the due jobs of a queue and priority that have no key and have not begun, the longest waiting first.
-- takes: queue, priority, wall, handlers list
SELECT job_id, '', attempt = 0, ready_at
  FROM jobs @indexed(jobs_to_claim)
 WHERE queue = :queue AND priority = :priority AND ready_at <= :wall AND ready_at IS NOT NULL AND hold IS NULL
   AND limit_key IS NULL AND began_in IS NULL AND @part(runnable, jobs)
 ORDER BY ready_at
