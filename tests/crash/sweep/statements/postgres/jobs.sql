-- jobs: the whole table, as the oracle reads it.
SELECT job_id, state, handler, payload::jsonb ->> 'label' AS label, result, error_code, semaphore, start_ledger, attempt,
       ready_at, hold, completed_at, idempotency_key, head_n, head_hash, parent_job_id, parent_step, dimension,
       start_acked_at, root_ledger
  FROM jobs
