-- insert_job: a job is born, QUEUED or, when its submitter also claims it, IN_PROGRESS with its start message entered.
-- FAIL, not ABORT, so that SQLite keeps no statement journal: who runs it undoes what came before a refused row.
INSERT OR FAIL INTO jobs (
  job_id, tenant_id, kind, handler, version, queue, priority, ready_at, deadline_at, created_at, payload, options,
  request_type, input_ref, output_ref, schema_version, idempotency_key, idempotency_hash, canon_version,
  correlation_id, traceparent, tags,
  state, attempt, attempts_total, root_ledger, start_ledger, head_n, head_hash, ledger_form, updated_at
)
VALUES (
  ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
  ?23, ?24, ?24, ?25, ?26, ?27, ?28, 1, ?10
)
