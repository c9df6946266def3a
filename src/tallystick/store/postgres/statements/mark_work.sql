-- mark_work: step 1 of a message: its work is durable. The digit is set once.
-- No row changed: it is set already, or the message is acknowledged.
UPDATE messages
   SET ledger = ledger + CASE WHEN ledger % 100000000 = 0 THEN 1 ELSE 0 END + 10000000000
 WHERE guid = $1 AND job_id = $2 AND acked_at IS NULL AND ledger / 10000000000 % 10 = 0
