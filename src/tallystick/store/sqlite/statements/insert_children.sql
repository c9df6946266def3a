-- insert_children: a child is born for a group; its identifier follows from its place, so a second birth is refused.
-- FAIL, not ABORT, so that SQLite keeps no statement journal: the caller undoes what came before a refused row.
-- takes: job_id, payload, Alike, ready_at, deadline_at, created_at, state, root_ledger, head_n, head_hash, parent_step
-- row: (:job_id, :payload, @values(Alike), :ready_at, :deadline_at, :created_at, :state, :root_ledger, :head_n, :head_hash,
--   :parent_step, 1, :created_at)
INSERT OR FAIL INTO jobs (@takes, ledger_form, updated_at) VALUES @rows
