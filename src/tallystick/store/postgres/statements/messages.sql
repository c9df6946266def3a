-- messages: a page of what arrived for a job, behind $2; of a child how it ended, of others not what they say.
SELECT guid, job_id, dimension, name, occurrence, kind, CASE WHEN kind = 'child' THEN payload END, due_at, ledger,
       redeliveries, created_at, arrived, acked_at
  FROM messages
 WHERE job_id = $1 AND guid > $2
 ORDER BY guid
 LIMIT $3::bigint
