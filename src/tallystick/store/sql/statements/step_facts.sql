-- step_facts: the steps of a job that follow a fact; each row is its own event, of the moment at which it ended.
-- takes: job_id text, after int, limit int
SELECT n, kind, completed_at, attempt, name, occurrence, state, ledger, result, error, notes, prev_hash, event_hash
  FROM steps
 WHERE job_id = :job_id AND n > :after
 ORDER BY n
 LIMIT :limit
