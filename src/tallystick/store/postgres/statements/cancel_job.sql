-- cancel_job: a job that nobody runs ends at once, by the path cancel, settle; everything it had open is dropped with it.
-- No row changed: it has another attempt, has ended, or its semaphore is not what it has open ($7).
UPDATE jobs
   SET state = 'CANCELLED', ready_at = NULL, hold = NULL, hold_reason = NULL, attempt = $6, semaphore = semaphore - $7::bigint,
       start_ledger = start_ledger + CASE WHEN start_ledger = 0 THEN 1 ELSE 0 END
         + CASE WHEN start_acked_at IS NULL THEN 111100000000 ELSE 0 END,
       start_acked_at = coalesce(start_acked_at, $3::bigint),
       cancel_at = coalesce(cancel_at, $3::bigint), completed_at = $3::bigint, updated_at = $3::bigint, head_n = $4, head_hash = $5, rev = rev + 1
 WHERE job_id = $1 AND attempt = $2 AND completed_at IS NULL AND semaphore = $7::bigint
