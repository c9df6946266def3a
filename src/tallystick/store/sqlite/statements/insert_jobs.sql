-- insert_jobs: a job is born, QUEUED or, when its submitter also claims it, IN_PROGRESS with its start message entered.
-- FAIL, not ABORT, so that SQLite keeps no statement journal: the caller undoes what came before a refused row.
-- takes: job_id, payload, Alike, ready_at, deadline_at, created_at, state, attempt, root_ledger, start_ledger, head_n, head_hash
-- row: (:job_id, :payload, @values(Alike), :ready_at, :deadline_at, :created_at, :state, :attempt, :root_ledger, :start_ledger, :head_n,
--   :head_hash, :attempt, 1, :created_at)
INSERT OR FAIL INTO jobs (@takes, attempts_total, ledger_form, updated_at) VALUES @rows
