-- begun_jobs: the due jobs of a queue with limits that have begun, the longest waiting first, and whether each was never claimed,
-- which is so of none.
-- takes: queue text, wall_now int, handlers text[], limit int
WITH clock AS MATERIALIZED (
  SELECT store_ms(:wall_now) AS wall
)
SELECT j.job_id, coalesce(j.limit_key, ''), 0
  FROM clock
 CROSS JOIN LATERAL (
       SELECT b.job_id, b.limit_key, b.ready_at
         FROM jobs AS b
        WHERE b.began_in = :queue AND b.began_in IS NOT NULL AND b.ready_at <= clock.wall AND b.ready_at IS NOT NULL
          AND b.hold IS NULL AND @part(runnable, b)
        ORDER BY b.ready_at
        LIMIT :limit) AS j
 ORDER BY j.ready_at
