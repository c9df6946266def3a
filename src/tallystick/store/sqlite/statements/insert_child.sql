-- insert_child: a child is born for a group; its identifier follows from its place, so a second birth is refused.
-- FAIL, not ABORT, so that SQLite keeps no statement journal: who runs it undoes what came before a refused row.
INSERT OR FAIL INTO jobs (
  job_id, tenant_id, kind, handler, version, queue, priority, ready_at, deadline_at, created_at, payload, options,
  state, attempt, head_n, head_hash, updated_at, parent_job_id, parent_step,
  tags, detached
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'QUEUED', 0, ?13, ?14, ?10, ?15, ?16, ?17, ?18)
