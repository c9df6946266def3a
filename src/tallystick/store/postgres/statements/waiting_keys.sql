-- waiting_keys: the keys of a queue with jobs that have not begun, in their order behind one, each found by a step of the index.
-- takes: queue text, after text, limit int
WITH RECURSIVE waiting (limit_key) AS (
  (SELECT j.limit_key
     FROM jobs AS j
    WHERE j.queue = :queue AND j.limit_key > :after AND j.limit_key IS NOT NULL AND j.began_in IS NULL
      AND j.ready_at IS NOT NULL AND j.hold IS NULL
    ORDER BY j.queue, j.limit_key
    LIMIT 1)
   UNION ALL
  SELECT following.limit_key
    FROM waiting
   CROSS JOIN LATERAL (
         SELECT j.limit_key
           FROM jobs AS j
          WHERE j.queue = :queue AND j.limit_key > waiting.limit_key AND j.limit_key IS NOT NULL AND j.began_in IS NULL
            AND j.ready_at IS NOT NULL AND j.hold IS NULL
          ORDER BY j.queue, j.limit_key
          LIMIT 1) AS following
)
SELECT limit_key FROM waiting LIMIT :limit
