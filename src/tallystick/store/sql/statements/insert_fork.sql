-- insert_fork: a job is born from another: its arguments and options, a deadline as far away as the other's was, no parent.
-- For a retry it takes the key along; the other must have failed, and no other may have taken its place.
-- Any other fork has the key of its own id, if it has one. No row: it is not a job that can be forked so.
-- takes: job_id text, new_id text, wall int, head_n int, head_hash bytes, version text, retry int, key text, hash text,
--   canon_version int, root_ledger int, options text
INSERT INTO jobs (
  job_id, state, @names(Forked), options, version, ready_at, deadline_at, created_at, updated_at, idempotency_key, idempotency_hash,
  canon_version, head_n, head_hash, retry_of, root_ledger, ledger_form
)
SELECT :new_id, 'QUEUED', @names(Forked), :options, coalesce(:version, version), :wall, :wall + deadline_at - created_at, :wall, :wall,
       CASE WHEN :retry = 1 THEN idempotency_key ELSE :key END, CASE WHEN :retry = 1 THEN idempotency_hash ELSE :hash END,
       CASE WHEN :retry = 1 THEN canon_version ELSE :canon_version END, :head_n, :head_hash, job_id, :root_ledger, 1
  FROM jobs
 WHERE job_id = :job_id AND kind = 'workflow' AND (:retry = 0 OR (state = 'FAILED_FINAL' AND retried_as IS NULL))
