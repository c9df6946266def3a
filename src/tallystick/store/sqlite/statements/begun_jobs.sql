-- begun_jobs: the due jobs of a queue with limits that have begun, the longest waiting first, and whether each was never claimed,
-- which is so of none.
-- takes: queue, wall, handlers list, limit
SELECT job_id, coalesce(limit_key, ''), 0
  FROM jobs @indexed(jobs_begun)
 WHERE began_in = :queue AND began_in IS NOT NULL AND ready_at <= :wall AND ready_at IS NOT NULL AND hold IS NULL
   AND @part(runnable, jobs)
 ORDER BY ready_at
 LIMIT :limit
