-- levels: the priorities of a queue that hold anything to claim, best first, found by hopping through the index.
WITH RECURSIVE level (priority) AS (
  SELECT min(priority) FROM jobs WHERE queue = ?1 AND ready_at IS NOT NULL AND hold IS NULL
  UNION ALL
  SELECT (SELECT min(j.priority)
            FROM jobs AS j
           WHERE j.queue = ?1 AND j.priority > level.priority AND j.ready_at IS NOT NULL AND j.hold IS NULL)
    FROM level
   WHERE level.priority IS NOT NULL
)
SELECT priority FROM level WHERE priority IS NOT NULL
