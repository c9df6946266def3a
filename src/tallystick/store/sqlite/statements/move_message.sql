-- move_message: the row of a message as a decision wants it, guarded by its digits.
-- No row changed: it has other digits, or is acknowledged.
UPDATE messages
   SET ledger = ?4, redeliveries = ?5, acked_at = ?6, dimension = ?7, occurrence = ?8
 WHERE guid = ?1 AND job_id = ?2 AND ledger = ?3 AND acked_at IS NULL
