-- close_start: step 1 and 2 of the start message, when its segment ends in a wait: marked, acknowledged, semaphore moved.
UPDATE jobs
   SET start_ledger = start_ledger + 11000000000, start_acked_at = $4, semaphore = semaphore + $3
 WHERE job_id = $1 AND attempt = $2 AND start_acked_at IS NULL
   AND start_ledger / 10000000000 % 10 = 0 AND start_ledger / 1000000000 % 10 = 0
