-- insert_child: a child is born for a group; its identifier follows from its place, so a second birth is refused.
-- FAIL, not ABORT, so that SQLite keeps no statement journal: who runs it undoes what came before a refused row.
INSERT OR FAIL INTO jobs (
  job_id, tenant_id, kind, handler, version, queue, priority, ready_at, deadline_at, created_at, payload, options,
  state, root_ledger, ledger_form, attempt, head_n, head_hash, updated_at, parent_job_id, parent_step, tags, detached
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, 1, 0, ?15, ?16, ?10, ?17, ?18, ?19, ?20)
