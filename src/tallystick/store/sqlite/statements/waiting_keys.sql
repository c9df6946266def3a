-- waiting_keys: the keys of a queue with jobs that have not begun, in their order behind one, each found by a step of the index.
-- takes: queue, after, limit
WITH RECURSIVE waiting (limit_key) AS (
  SELECT (SELECT min(j.limit_key)
            FROM jobs AS j @indexed(jobs_of_key)
           WHERE j.queue = :queue AND j.limit_key > :after AND j.limit_key IS NOT NULL AND j.began_in IS NULL
             AND j.ready_at IS NOT NULL AND j.hold IS NULL)
   UNION ALL
  SELECT (SELECT min(j.limit_key)
            FROM jobs AS j @indexed(jobs_of_key)
           WHERE j.queue = :queue AND j.limit_key > waiting.limit_key AND j.limit_key IS NOT NULL AND j.began_in IS NULL
             AND j.ready_at IS NOT NULL AND j.hold IS NULL)
    FROM waiting
   WHERE waiting.limit_key IS NOT NULL
   LIMIT :limit
)
SELECT limit_key FROM waiting WHERE limit_key IS NOT NULL
