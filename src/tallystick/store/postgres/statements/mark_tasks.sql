-- mark_tasks: step 3 of the closer, in the bundle whose rows are the completion tasks.
-- No row changed: it did not close the job, or did this already.
UPDATE messages
   SET ledger = ledger + 100000000, acked_at = $3
 WHERE guid = $1 AND job_id = $2 AND acked_at IS NULL
   AND ledger / 100000000000 % 10 = 1 AND ledger / 100000000 % 10 = 0
