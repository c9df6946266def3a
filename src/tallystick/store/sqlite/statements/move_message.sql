-- move_message: the row of a message as a decision wants it, guarded by its digits.
-- No row changed: it has other digits, or is acknowledged.
-- takes: Message, digits
UPDATE messages
   SET ledger = :ledger, redeliveries = :redeliveries, acked_at = :acked_at, dimension = :dimension, occurrence = :occurrence
 WHERE guid = :guid AND job_id = :job_id AND ledger = :digits AND acked_at IS NULL
