-- picture_early: the words of children of these jobs that ended before their group was complete.
SELECT m.guid, m.job_id, m.dimension, m.name, m.occurrence, m.kind, m.payload, m.due_at, m.ledger, m.redeliveries, m.created_at,
       m.arrived, m.acked_at
  FROM unnest($1::text[]) AS wanted (job_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM messages
        WHERE messages.job_id = wanted.job_id AND messages.kind = 'child' AND messages.acked_at IS NULL
       OFFSET 0) AS m
