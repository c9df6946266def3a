-- steps: every row that is its own event, with all that its hash covers.
SELECT job_id, n, kind, created_at, attempt, name, occurrence, state, ledger, result, error, notes, prev_hash, event_hash
  FROM steps
 WHERE n IS NOT NULL
