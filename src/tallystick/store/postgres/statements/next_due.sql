-- next_due: when the next job of these queues becomes due, looked up once for each queue and priority.
SELECT min(first.ready_at)
  FROM unnest($1::text[]) AS asked (queue)
 CROSS JOIN generate_series(0, 9) AS level (priority)
 CROSS JOIN LATERAL (
       SELECT j.ready_at
         FROM jobs AS j
        WHERE j.queue = asked.queue AND j.priority = level.priority AND j.ready_at IS NOT NULL AND j.hold IS NULL
        ORDER BY j.ready_at
        LIMIT 1) AS first
