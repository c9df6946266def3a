-- queue_depth: how many jobs of a queue are due, counted up to a limit for each priority, and since when the first.
-- takes: queue text, now int, limit int
WITH RECURSIVE priorities (priority) AS (
  SELECT 0
   UNION ALL
  SELECT priority + 1 FROM priorities WHERE priority < 9
)
SELECT CAST(sum((SELECT count(*)
                   FROM (SELECT 1
                           FROM jobs AS j
                          WHERE j.queue = :queue AND j.priority = priorities.priority AND j.ready_at <= :now AND j.hold IS NULL
                          LIMIT :limit) AS counted)) AS BIGINT),
       min((SELECT min(j.ready_at)
              FROM jobs AS j
             WHERE j.queue = :queue AND j.priority = priorities.priority AND j.ready_at <= :now AND j.hold IS NULL))
  FROM priorities
