-- finished: those of the listed jobs that have ended.
SELECT job_id, state, handler, version, queue, priority, tenant_id, attempt, ready_at, hold, hold_reason, semaphore,
       start_ledger, created_at, updated_at, completed_at, deadline_at, payload, options, result, error, error_code,
       error_message, idempotency_key, idempotency_hash, tags, retry_of, retried_as
  FROM jobs
 WHERE job_id = ANY ($1::text[]) AND completed_at IS NOT NULL
