-- drivers: the messages because of which suspended jobs are claimed: of each job one that began already, else the first
-- that is due: the word to go on, the timer of an open wait, or for each open wait the first signal of its name. A job
-- without one is left out. How many messages wait for none of these does not matter.
SELECT message.job_id, message.guid, message.kind, message.dimension, message.name, message.occurrence, message.payload,
       message.ledger / 10000000000 % 10 = 1
  FROM json_each(?1) AS wanted CROSS JOIN messages AS message
 WHERE message.guid = (
         SELECT due.guid
           FROM (SELECT m.guid, 0 AS rank, coalesce(m.due_at, m.created_at) AS since, m.arrived
                   FROM messages AS m INDEXED BY messages_begun
                  WHERE m.job_id = wanted.key AND m.acked_at IS NULL AND m.ledger > 0
                    AND (m.due_at IS NULL OR m.due_at <= ?2)
                 UNION ALL
                 SELECT m.guid, 1, coalesce(m.due_at, m.created_at), m.arrived
                   FROM messages AS m INDEXED BY messages_waiting
                  WHERE m.job_id = wanted.key AND m.kind IN ('resume', 'timer', 'start', 'child', 'result')
                    AND m.acked_at IS NULL AND m.ledger = 0 AND (m.due_at IS NULL OR m.due_at <= ?2)
                    AND (m.kind = 'resume'
                      OR EXISTS (SELECT 1
                                   FROM steps AS s INDEXED BY steps_open
                                  WHERE s.job_id = m.job_id AND s.name = m.name AND s.occurrence = m.occurrence
                                    AND s.completed_at IS NULL AND s.state = 'IN_PROGRESS'))
                 UNION ALL
                 SELECT m.guid, 1, m.created_at, m.arrived
                   FROM steps AS s INDEXED BY steps_open CROSS JOIN messages AS m
                  WHERE s.job_id = wanted.key AND s.completed_at IS NULL AND s.kind = 'wait' AND s.state = 'IN_PROGRESS'
                    AND m.guid = (SELECT first.guid
                                    FROM messages AS first INDEXED BY messages_waiting
                                   WHERE first.job_id = s.job_id AND first.kind = 'signal' AND first.name = s.name
                                     AND first.acked_at IS NULL AND first.ledger = 0
                                   ORDER BY first.arrived
                                   LIMIT 1)) AS due
          ORDER BY due.rank, due.since, due.arrived
          LIMIT 1)
