-- end_jobs: steps 2 and 3 of start messages, and with them the ends of jobs that have nothing else open: each semaphore
-- falls to zero, the digits of start and root are those of a closer, and the result is there. Runs after `end_attempts`.
-- Fewer rows changed than given: a job moved on, or is being cancelled and wants to end otherwise, or obligations are open.
-- takes: job_id, attempt, state, result, error, error_code, error_message, head_n, head_hash, at, root_before, root_ledger,
--   start_before, start_ledger
-- row: (:job_id, :attempt, :state, :result, :error, :error_code, :error_message, :head_n, :head_hash, :at, :root_before,
--   :root_ledger, :start_before, :start_ledger)
UPDATE jobs
   SET state = given.state, result = given.result, error = given.error, error_code = given.error_code,
       error_message = given.error_message, hold = NULL, hold_reason = NULL, semaphore = semaphore - 1,
       root_ledger = given.root_ledger, start_ledger = given.start_ledger, start_acked_at = given.at,
       completed_at = given.at, updated_at = given.at, head_n = given.head_n, head_hash = given.head_hash, rev = rev + 1
  FROM @given
 WHERE jobs.job_id = given.job_id AND jobs.attempt = given.attempt AND jobs.state = 'IN_PROGRESS' AND semaphore = 1
   AND jobs.root_ledger = given.root_before AND jobs.start_ledger = given.start_before
