-- move_job: the row of a job as a decision wants it, guarded by its revision.
-- No row changed: it is not as it was when it was looked at.
UPDATE jobs
   SET state = ?3, attempt = ?4, dimension = ?5, ready_at = ?6, hold = ?7, semaphore = ?8, root_ledger = ?9, start_ledger = ?10,
       start_acked_at = ?11, cancel_at = ?12, completed_at = ?13, rev = ?14, head_n = coalesce(?15, head_n),
       head_hash = coalesce(?16, head_hash), payload = coalesce(?17, payload), result = coalesce(?18, result), error = ?19, error_code = ?20,
       error_message = ?21, hold_reason = CASE WHEN ?7 IS NULL THEN NULL ELSE coalesce(?22, hold_reason) END, updated_at = ?23
 WHERE job_id = ?1 AND rev = ?2
