-- picture_drivers: what may drive jobs that were put away ($1): messages that have begun, words and timers that are due
-- ($2: wall time if it is not this server's), and for each open wait the first signal of its name. How many messages wait for none of these does not matter.
SELECT @names(Message, m)
  FROM unnest($1::text[]) AS wanted (job_id)
 CROSS JOIN LATERAL (
       (SELECT * FROM messages AS b WHERE b.job_id = wanted.job_id AND b.acked_at IS NULL AND b.ledger > 0)
       UNION ALL
       SELECT w.*
         FROM unnest(ARRAY['resume', 'timer', 'result']) AS one (kind)
        CROSS JOIN LATERAL (
              SELECT *
                FROM messages
               WHERE messages.job_id = wanted.job_id AND messages.kind = one.kind AND messages.acked_at IS NULL
              OFFSET 0) AS w
        WHERE w.ledger = 0 AND (w.due_at IS NULL OR w.due_at <= store_ms($2::bigint))
       UNION ALL
       SELECT first.*
         FROM steps AS s
        CROSS JOIN LATERAL (
              SELECT *
                FROM messages
               WHERE messages.job_id = wanted.job_id AND messages.kind = 'signal' AND messages.name = s.name
                 AND messages.acked_at IS NULL AND messages.ledger = 0
               ORDER BY messages.job_id, messages.kind, messages.name, messages.arrived
               LIMIT 1) AS first
        WHERE s.job_id = wanted.job_id AND s.completed_at IS NULL AND s.kind = 'wait' AND s.state = 'IN_PROGRESS') AS m
