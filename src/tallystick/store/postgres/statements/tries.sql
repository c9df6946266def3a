-- tries: the failed tries and drawn values of the current turn of the listed jobs, job by job in the order of happening.
SELECT e.*
  FROM jsonb_array_elements($1::jsonb) AS r
 CROSS JOIN LATERAL (
       SELECT job_id, n, type, at, attempt, payload, prev_hash, event_hash
         FROM events
        WHERE job_id = r ->> 0 AND type IN ('try', 'note')
          AND n > (SELECT coalesce(max(n), 0) FROM events WHERE job_id = r ->> 0 AND type = 'again')
        ORDER BY n) AS e
