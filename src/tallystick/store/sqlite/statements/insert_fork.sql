-- insert_fork: a job is born from another: its arguments and options, a deadline as far away as the other's was, no parent.
-- For a retry (?7 = 1) it takes the key along; the other must have failed, and nobody may have taken its place.
-- Any other fork has the key of its own id, if it has one.
-- No row: it is not a job that can be forked so.
INSERT INTO jobs (
  job_id, state, tenant_id, kind, handler, version, queue, priority, ready_at, deadline_at, created_at, updated_at,
  payload, options, request_type, input_ref, output_ref, schema_version, idempotency_key, idempotency_hash,
  canon_version, correlation_id, traceparent, tags, head_n, head_hash, retry_of, root_ledger, ledger_form
)
SELECT ?2, 'QUEUED', tenant_id, kind, handler, coalesce(?6, version), queue, priority, ?3, ?3 + deadline_at - created_at,
       ?3, ?3, payload, options, request_type, input_ref, output_ref, schema_version,
       CASE WHEN ?7 = 1 THEN idempotency_key ELSE ?8 END, CASE WHEN ?7 = 1 THEN idempotency_hash ELSE ?9 END,
       CASE WHEN ?7 = 1 THEN canon_version ELSE ?10 END, correlation_id, traceparent, tags, ?4, ?5, job_id, ?11, 1
  FROM jobs
 WHERE job_id = ?1 AND kind = 'workflow' AND (?7 = 0 OR (state = 'FAILED_FINAL' AND retried_as IS NULL))
