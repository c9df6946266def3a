-- picture_message: one message by its identifier. No row: it was never delivered.
SELECT guid, job_id, dimension, name, occurrence, kind, payload, due_at, ledger, redeliveries, created_at, arrived, acked_at
  FROM messages
 WHERE guid = ?1
