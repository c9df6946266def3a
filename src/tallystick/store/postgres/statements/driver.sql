-- driver: the message because of which a suspended job is claimed: one that began already, else the first that is due.
SELECT m.guid, m.kind, m.dimension, m.name, m.occurrence, m.payload, m.ledger / 10000000000 % 10 = 1
  FROM messages AS m
 WHERE m.job_id = $1 AND m.acked_at IS NULL AND (m.due_at IS NULL OR m.due_at <= $2)
   AND (m.ledger > 0
     OR m.kind = 'resume'
     OR EXISTS (SELECT 1
                  FROM steps AS s
                 WHERE s.job_id = m.job_id AND s.name = m.name AND s.state = 'IN_PROGRESS'
                   AND (s.occurrence = m.occurrence OR (m.kind = 'signal' AND s.kind = 'wait'))))
 ORDER BY m.ledger = 0, coalesce(m.due_at, m.created_at), m.arrived
 LIMIT 1
