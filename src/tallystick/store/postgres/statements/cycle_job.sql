-- cycle_job: the same job turns once more: a new dimension with an empty history, one more entry of its root.
-- No row changed: the counter of entries is full, or the job moved on.
UPDATE jobs
   SET dimension = dimension + 1, payload = $3, start_ledger = start_ledger + 1, rev = rev + 1
 WHERE job_id = $1 AND attempt = $2 AND state = 'IN_PROGRESS' AND start_ledger % 100000000 < 99999999
