-- step_facts: the inline steps of a job in order; each row is its own event.
SELECT n, kind, created_at, attempt, name, occurrence, state, ledger, result, error, notes, prev_hash, event_hash
  FROM steps
 WHERE job_id = $1 AND n IS NOT NULL
 ORDER BY n
