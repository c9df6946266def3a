-- drivers: the messages because of which suspended jobs are claimed: of each job one that began already, else the first
-- that is due. A job without one is left out.
SELECT message.job_id, message.guid, message.kind, message.dimension, message.name, message.occurrence, message.payload,
       message.ledger / 10000000000 % 10 = 1
  FROM json_each(?1) AS wanted CROSS JOIN messages AS message
 WHERE message.guid = (
         SELECT m.guid
           FROM messages AS m INDEXED BY messages_inbox
          WHERE m.job_id = wanted.key AND m.acked_at IS NULL AND (m.due_at IS NULL OR m.due_at <= ?2)
            AND (m.ledger > 0
              OR m.kind = 'resume'
              OR EXISTS (SELECT 1
                           FROM steps AS s
                          WHERE s.job_id = m.job_id AND s.name = m.name AND s.state = 'IN_PROGRESS'
                            AND (s.occurrence = m.occurrence OR (m.kind = 'signal' AND s.kind = 'wait'))))
          ORDER BY m.ledger = 0, coalesce(m.due_at, m.created_at), m.arrived
          LIMIT 1)
