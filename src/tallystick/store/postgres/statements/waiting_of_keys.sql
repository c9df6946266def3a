-- waiting_of_keys: the due jobs of these keys that have not begun, of each as many as are wanted, by key, priority and age.
-- takes: queue text, keys text[], wall_now int, handlers text[], limit int
WITH clock AS MATERIALIZED (
  SELECT store_ms(:wall_now) AS wall
)
SELECT found.job_id, asked.limit_key, found.attempt = 0, found.ready_at
  FROM clock
 CROSS JOIN unnest(:keys) WITH ORDINALITY AS asked (limit_key, place)
 CROSS JOIN generate_series(0, 9) AS level (priority)
 CROSS JOIN LATERAL (
       SELECT j.job_id, j.attempt, j.ready_at
         FROM jobs AS j
        WHERE j.queue = :queue AND j.limit_key = asked.limit_key AND j.limit_key IS NOT NULL
          AND j.began_in IS NULL AND j.priority = level.priority AND j.ready_at <= clock.wall AND j.ready_at IS NOT NULL
          AND j.hold IS NULL AND @part(runnable, j)
        ORDER BY j.queue, j.limit_key, j.priority, j.ready_at
        LIMIT :limit) AS found
 ORDER BY asked.place, level.priority, found.ready_at
