-- next_due: when the next job of these queues becomes due after an instant, looked up once for each queue and priority,
-- and what time it is now, because the caller may have another clock.
-- $1 queues, $2 the instant, which may be taken for later than now, $3 wall time if it is not this server's.
SELECT min(first.ready_at), store_ms($3::bigint)
  FROM unnest($1::text[]) AS asked (queue)
 CROSS JOIN generate_series(0, 9) AS level (priority)
 CROSS JOIN LATERAL (
       SELECT j.ready_at
         FROM jobs AS j
        WHERE j.queue = asked.queue AND j.priority = level.priority AND j.ready_at IS NOT NULL AND j.hold IS NULL
          AND j.ready_at > (SELECT least($2::bigint, store_ms($3::bigint)))
        ORDER BY j.ready_at
        LIMIT 1) AS first
