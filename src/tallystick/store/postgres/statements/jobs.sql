-- jobs: a page of jobs, newest first; identifiers are in the order of submission, so the key is the cursor.
SELECT job_id, state, handler, version, queue, priority, tenant_id, attempt, ready_at, hold, hold_reason, semaphore,
       start_ledger, created_at, updated_at, completed_at, deadline_at, payload, options, result, error, error_code,
       error_message, idempotency_key, idempotency_hash, tags, retry_of, retried_as
  FROM jobs
 WHERE tenant_id = $1
   AND ($2::text[] = '{}' OR state = ANY ($2::text[]))
   AND ($3::text IS NULL OR handler = $3)
   AND ($4::text IS NULL OR job_id < $4)
   AND ($6::text IS NULL OR job_id IN (SELECT tagged.job_id FROM job_tags AS tagged WHERE tagged.tag = $6))
 ORDER BY job_id DESC
 LIMIT $5::bigint
