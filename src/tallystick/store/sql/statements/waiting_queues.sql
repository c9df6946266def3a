-- waiting_queues: the queues in which a job may be claimed now or later, found by one step of the index for each.
WITH RECURSIVE waiting (queue) AS (
  SELECT min(queue) FROM jobs WHERE ready_at IS NOT NULL AND hold IS NULL
   UNION ALL
  SELECT (SELECT min(j.queue) FROM jobs AS j WHERE j.ready_at IS NOT NULL AND j.hold IS NULL AND j.queue > waiting.queue)
    FROM waiting
   WHERE waiting.queue IS NOT NULL
)
SELECT queue FROM waiting WHERE queue IS NOT NULL
