-- steps: every row that is its own event, with all that its hash covers; a wait became a fact when it was answered.
SELECT job_id, n, kind, completed_at, attempt, name, occurrence, state, ledger, result, error, notes, prev_hash,
       event_hash, dimension, threshold, payload
  FROM steps
 WHERE n IS NOT NULL
