-- dead: a page of jobs that have failed and that no other job took the place of, newest first, by the index that holds
-- only those. The columns are those of `job`.
SELECT job_id, state, handler, version, queue, priority, tenant_id, attempt, ready_at, hold, hold_reason, semaphore,
       start_ledger, created_at, updated_at, completed_at, deadline_at, payload, options, result, error, error_code,
       error_message, idempotency_key, idempotency_hash, tags, retry_of, retried_as
  FROM jobs
 WHERE tenant_id = ?1 AND state = 'FAILED_FINAL' AND retried_as IS NULL
   AND (?2 IS NULL OR handler = ?2)
   AND job_id < coalesce(?3, char(1114111))
 ORDER BY job_id DESC
 LIMIT ?4
