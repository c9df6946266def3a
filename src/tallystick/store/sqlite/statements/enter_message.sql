-- enter_message: the entry of a message that drives a segment: counted once, redelivered from then on. Before any work.
UPDATE messages
   SET redeliveries = redeliveries + (ledger > 0), ledger = ledger + (ledger = 0)
 WHERE guid = ?1 AND job_id = ?2 AND acked_at IS NULL
