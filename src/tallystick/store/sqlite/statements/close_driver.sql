-- close_driver: steps 2 and 3 of the message that drove a job to its end: counted, the closer, its tasks done, acknowledged.
-- Runs with `end_woken_job` in the same bundle, which moves the semaphore.
-- No row changed: its work is not durable, or it is counted already.
UPDATE messages
   SET ledger = ledger + 101100000000, acked_at = ?3
 WHERE guid = ?1 AND job_id = ?2 AND acked_at IS NULL AND ledger / 100000000 % 10000 = 100
