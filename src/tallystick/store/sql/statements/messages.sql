-- messages: a page of what arrived for a job; of a child how it ended, of others not what they say.
-- takes: job_id text, after text, limit int
SELECT guid, job_id, dimension, name, occurrence, kind, CASE WHEN kind = 'child' THEN payload END, due_at, ledger,
       redeliveries, created_at, arrived, acked_at
  FROM messages
 WHERE job_id = :job_id AND guid > :after
 ORDER BY guid
 LIMIT :limit
