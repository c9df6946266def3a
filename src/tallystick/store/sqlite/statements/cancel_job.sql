-- cancel_job: a job that nobody runs ends at once, by the path cancel, settle; everything it had open is dropped with it.
-- No row changed: it has another attempt, has ended, or its semaphore is not what it has open (?7).
UPDATE jobs
   SET state = 'CANCELLED', ready_at = NULL, hold = NULL, hold_reason = NULL, attempt = ?6, semaphore = semaphore - ?7,
       start_ledger = start_ledger + (start_ledger = 0) + 111100000000 * (start_acked_at IS NULL),
       start_acked_at = coalesce(start_acked_at, ?3),
       cancel_at = coalesce(cancel_at, ?3), completed_at = ?3, updated_at = ?3, head_n = ?4, head_hash = ?5, rev = rev + 1
 WHERE job_id = ?1 AND attempt = ?2 AND completed_at IS NULL AND semaphore = ?7
