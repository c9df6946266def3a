-- move_job: the row of a job as a decision wants it, guarded by its revision.
-- No row changed: it is not as it was when it was looked at.
-- takes: JobFacts, before, head_n, head_hash, JobValues, at
UPDATE jobs
   SET state = :state, attempt = :attempt, dimension = :dimension, ready_at = :ready_at, hold = :hold, semaphore = :semaphore,
       root_ledger = :root_ledger, start_ledger = :start_ledger, start_acked_at = :start_acked_at, cancel_at = :cancel_at,
       completed_at = :completed_at, rev = :rev, head_n = coalesce(:head_n, head_n),
       head_hash = coalesce(:head_hash, head_hash), payload = coalesce(:payload, payload), result = coalesce(:result, result), error = coalesce(:error, error),
       error_code = coalesce(:error_code, error_code), error_message = coalesce(:error_message, error_message),
       hold_reason = CASE WHEN :hold IS NULL THEN NULL ELSE coalesce(:hold_reason, hold_reason) END, updated_at = :at,
       hook_told = CASE WHEN :hold IS NOT NULL THEN hook_told END, hook_at = CASE WHEN :hold IS NOT NULL THEN hook_at END,
       hook_tries = CASE WHEN :hold IS NOT NULL THEN hook_tries ELSE 0 END
 WHERE job_id = :job_id AND rev = :before
