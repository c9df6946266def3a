-- move_job: rows of jobs as decisions want them, each guarded by its revision.
-- A hold that ends before its hook was called is remembered as missed.
-- Fewer rows changed than given: one is not as it was when it was looked at.
-- takes: Moved, before, head_n, head_hash, JobValues, at
-- row: (@values(Moved), :before, :head_n, :head_hash, @values(JobValues), :at)
UPDATE jobs
   SET state = given.state, attempt = given.attempt, dimension = given.dimension, ready_at = given.ready_at, hold = given.hold,
       semaphore = given.semaphore, root_ledger = given.root_ledger, start_ledger = given.start_ledger,
       start_acked_at = given.start_acked_at, cancel_at = given.cancel_at, completed_at = given.completed_at, rev = given.rev,
       head_n = coalesce(given.head_n, jobs.head_n), head_hash = coalesce(given.head_hash, jobs.head_hash),
       payload = coalesce(given.payload, jobs.payload), result = coalesce(given.result, jobs.result),
       error = coalesce(given.error, jobs.error), error_code = coalesce(given.error_code, jobs.error_code),
       error_message = coalesce(given.error_message, jobs.error_message),
       current_step_id = coalesce(given.current_step_id, jobs.current_step_id),
       hold_reason = CASE WHEN given.hold IS NOT NULL THEN coalesce(given.hold_reason, jobs.hold_reason) END, updated_at = given.at,
       hook_told = CASE WHEN given.hold IS NOT NULL THEN jobs.hook_told
                        WHEN jobs.hook_told = 'missed' OR (jobs.hold IS NOT NULL AND jobs.hook_due IS NOT NULL) THEN 'missed' END,
       hook_at = CASE WHEN given.hold IS NOT NULL OR jobs.hook_due IS NOT NULL THEN jobs.hook_at END,
       hook_tries = CASE WHEN given.hold IS NOT NULL OR jobs.hook_due IS NOT NULL THEN jobs.hook_tries ELSE 0 END
  FROM @given
 WHERE jobs.job_id = given.job_id AND jobs.rev = given.before
