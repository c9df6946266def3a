-- end_job: step 2 and 3 of the start message in one statement: the semaphore falls, the closer digit is written if it
-- reached zero, and the result with it. Runs after `end_attempt` in the same bundle.
-- No row changed: the job moved on, or is being cancelled and wants to end otherwise, or obligations are still open.
UPDATE jobs
   SET state = $3,
       result = $4,
       error = $5,
       error_code = $6,
       error_message = $7,
       hold = NULL,
       hold_reason = NULL,
       semaphore = semaphore - 1,
       start_ledger = start_ledger + 11000000000 + CASE WHEN semaphore - 1 = 0 THEN 100100000000 ELSE 0 END,
       start_acked_at = $10,
       completed_at = $10,
       updated_at = $10,
       head_n = $8,
       head_hash = $9,
       rev = rev + 1
 WHERE job_id = $1 AND attempt = $2 AND state = CASE $3::text WHEN 'CANCELLED' THEN 'CANCELLING' ELSE 'IN_PROGRESS' END AND semaphore = 1
   AND start_ledger / 10000000000 % 10 = 0 AND start_ledger / 1000000000 % 10 = 0
