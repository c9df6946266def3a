-- driver: the message because of which a suspended job is claimed: one that began already, else the first that is due: the
-- word to go on, the timer of an open wait, or for each open wait the first signal of its name. How many messages wait
-- for none of these does not matter.
SELECT guid, kind, dimension, name, occurrence, payload, ledger / 10000000000 % 10 = 1
  FROM ((SELECT m.*
           FROM messages AS m
          WHERE m.job_id = $1 AND m.acked_at IS NULL AND m.ledger > 0 AND (m.due_at IS NULL OR m.due_at <= $2))
        UNION ALL
        SELECT m.*
          FROM unnest(ARRAY['resume', 'timer', 'start', 'child', 'result']) AS one (kind)
         CROSS JOIN LATERAL (
               SELECT *
                 FROM messages
                WHERE messages.job_id = $1 AND messages.kind = one.kind AND messages.acked_at IS NULL
               OFFSET 0) AS m
         WHERE m.ledger = 0 AND (m.due_at IS NULL OR m.due_at <= $2)
           AND (m.kind = 'resume'
             OR EXISTS (SELECT 1
                          FROM steps AS s
                         WHERE s.job_id = $1 AND s.name = m.name AND s.occurrence = m.occurrence
                           AND s.completed_at IS NULL AND s.state = 'IN_PROGRESS'))
        UNION ALL
        SELECT m.*
          FROM steps AS s
         CROSS JOIN LATERAL (
               SELECT first.*
                 FROM messages AS first
                WHERE first.job_id = $1 AND first.kind = 'signal' AND first.name = s.name AND first.acked_at IS NULL
                  AND first.ledger = 0
                ORDER BY first.job_id, first.kind, first.name, first.arrived
                LIMIT 1) AS m
         WHERE s.job_id = $1 AND s.completed_at IS NULL AND s.kind = 'wait' AND s.state = 'IN_PROGRESS') AS due
 ORDER BY ledger = 0, coalesce(due_at, created_at), arrived
 LIMIT 1
