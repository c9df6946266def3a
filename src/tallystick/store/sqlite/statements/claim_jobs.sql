-- claim_jobs: take due jobs; the start message of each is entered the first time and redelivered from then on.
-- Fewer rows changed than given: another claim took one, or it is held.
-- takes: job_id, attempt, head_n, head_hash, at, root_ledger, start_ledger, hooks
-- row: (:job_id, :attempt, :head_n, :head_hash, :at, :root_ledger, :start_ledger, :hooks)
UPDATE jobs
   SET state = iif(jobs.state = 'CANCELLING', 'CANCELLING', 'IN_PROGRESS'), attempt = jobs.attempt + 1,
       attempts_total = attempts_total + 1, ready_at = NULL,
       start_redeliveries = start_redeliveries + (jobs.start_ledger > 0 AND start_acked_at IS NULL),
       root_ledger = iif(jobs.start_ledger = 0 AND start_acked_at IS NULL, given.root_ledger, jobs.root_ledger),
       start_ledger = iif(jobs.start_ledger = 0 AND start_acked_at IS NULL, given.start_ledger, jobs.start_ledger),
       head_n = given.head_n, head_hash = given.head_hash, updated_at = given.at, rev = rev + 1,
       hooks = coalesce(given.hooks, jobs.hooks)
  FROM @given
 WHERE jobs.job_id = given.job_id AND jobs.attempt = given.attempt AND ready_at IS NOT NULL AND hold IS NULL
   AND @is(claimable, state)
