-- waiting_without_key: the due jobs of a queue and priority from a place on, so many and the longest waiting first; of each whether it
-- has no key, has not begun and may be claimed. Two parts, because SQLite finds a place in the index only by columns that are equal.
-- takes: queue, priority, ready_at, place, wall, handlers list, limit
SELECT job_id, attempt = 0, limit_key IS NULL AND began_in IS NULL AND @part(runnable, jobs), ready_at, rowid
  FROM jobs @indexed(jobs_to_claim)
 WHERE queue = :queue AND priority = :priority AND ready_at = :ready_at AND rowid >= :place AND ready_at <= :wall
   AND ready_at IS NOT NULL AND hold IS NULL
 UNION ALL
SELECT job_id, attempt = 0, limit_key IS NULL AND began_in IS NULL AND @part(runnable, jobs), ready_at, rowid
  FROM jobs @indexed(jobs_to_claim)
 WHERE queue = :queue AND priority = :priority AND ready_at > :ready_at AND ready_at <= :wall AND ready_at IS NOT NULL AND hold IS NULL
 ORDER BY 4, 5
 LIMIT :limit
