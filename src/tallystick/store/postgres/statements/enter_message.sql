-- enter_message: the entry of a message that drives a segment: counted once, redelivered from then on. Before any work.
UPDATE messages
   SET redeliveries = redeliveries + CASE WHEN ledger > 0 THEN 1 ELSE 0 END,
       ledger = ledger + CASE WHEN ledger = 0 THEN 1 ELSE 0 END
 WHERE guid = $1 AND job_id = $2 AND acked_at IS NULL
