-- claimed: what a claim reads of a job; `past` says what it has lost.
@job.ctid AS job_at, @job.job_id, @job.attempt, @job.handler, @job.version, @job.payload, @job.options, @job.dimension,
@job.deadline_at, @job.created_at, @job.head_n, @job.head_hash, @job.start_acked_at, @job.parent_job_id, @job.parent_step,
@job.state = 'CANCELLING' AS cancelling, @job.semaphore, @job.ready_at AS was_ready_at, @job.idempotency_key, @job.tags,
CASE WHEN @job.start_acked_at IS NOT NULL
THEN ARRAY[@job.root_ledger, @job.start_ledger, @job.start_acked_at, @job.cancel_at, @job.rev + 1, @job.ledger_form] END AS woken,
past.charged, past.suspect
