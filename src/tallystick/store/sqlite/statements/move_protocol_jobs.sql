-- move_protocol_jobs: the row of a protocol job as a decision wants it, guarded by its revision.
-- No row changed: it is not as it was when it was looked at.
-- takes: ProtocolJob, before, head_n, head_hash, at
UPDATE jobs
   SET state = :state, rev = :rev, semaphore = :semaphore, root_ledger = :root_ledger, current_step_id = :current_step_id,
       current_step_index = :current_step_index, attempts_total = :attempts_total, completed_at = :completed_at, result = :result,
       error = :error, error_code = :error_code, error_message = :error_message, head_n = :head_n, head_hash = :head_hash,
       updated_at = :at, hold = :hold, hold_reason = CASE WHEN :hold IS NOT NULL THEN hold_reason END
 WHERE job_id = :job_id AND rev = :before AND kind = 'protocol'
