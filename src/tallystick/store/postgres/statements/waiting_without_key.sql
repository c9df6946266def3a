-- waiting_without_key: the due jobs of a queue from places on, each at a priority, so many of each and the longest waiting first; of each
-- job whether it has no key, has not begun and may be claimed.
-- takes: queue text, priorities bigint[], ready_ats bigint[], places text[], wall_now int, handlers text[], limit int
WITH clock AS MATERIALIZED (
  SELECT store_ms(:wall_now) AS wall
)
SELECT asked.number, found.job_id, found.attempt = 0, found.fits, found.ready_at
  FROM clock
 CROSS JOIN unnest(:priorities, :ready_ats, :places) WITH ORDINALITY AS asked (priority, ready_at, place, number)
 CROSS JOIN LATERAL (
       SELECT j.job_id, j.attempt, j.ready_at, j.limit_key IS NULL AND j.began_in IS NULL AND @part(runnable, j) AS fits
         FROM jobs AS j
        WHERE j.queue = :queue AND j.priority = asked.priority AND (j.ready_at, j.job_id) >= (asked.ready_at, asked.place)
          AND j.ready_at <= clock.wall AND j.ready_at IS NOT NULL AND j.hold IS NULL
        ORDER BY j.queue, j.priority, j.ready_at, j.job_id
        LIMIT :limit) AS found
 ORDER BY asked.number, found.ready_at, found.job_id
