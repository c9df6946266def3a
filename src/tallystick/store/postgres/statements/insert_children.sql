-- insert_children: children are born for groups; an identifier follows from its place, so a second birth is refused.
INSERT INTO jobs (
  job_id, tenant_id, kind, handler, version, queue, priority, ready_at, deadline_at, created_at, payload, options,
  state, root_ledger, ledger_form, attempt, head_n, head_hash, updated_at, parent_job_id, parent_step, tags, detached
)
SELECT job_id, tenant_id, kind, handler, version, queue, priority, ready_at, deadline_at, created_at, payload, options,
       state, root_ledger, 1, 0, head_n, decode(head_hash, 'hex'), created_at, parent_job_id, parent_step, tags, detached::int
  FROM jsonb_to_recordset($1::jsonb) AS listed (
    job_id text, tenant_id text, kind text, handler text, version text, queue text, priority bigint, ready_at bigint,
    deadline_at bigint, created_at bigint, payload text, options text, state text, root_ledger bigint, head_n bigint,
    head_hash text, parent_job_id text, parent_step text, tags text, detached boolean)
