-- messages: the whole table; those of one job in the order in which they are to be taken.
SELECT job_id, guid, ledger, dimension, name, occurrence, kind, payload, created_at, due_at, acked_at
  FROM messages
 ORDER BY job_id, created_at, arrived
