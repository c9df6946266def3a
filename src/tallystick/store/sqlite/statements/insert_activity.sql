-- insert_activity: a wait, a sleep or a group begins, or one that was answered before it was asked for.
-- No row: an event stands at its place of the chain.
INSERT INTO steps (
  job_id, dimension, name, occurrence, kind, state, ledger, rev, attempt, semaphore, threshold, failed, payload,
  created_at, completed_at, result, n, prev_hash, event_hash
)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19
 WHERE NOT EXISTS (SELECT 1 FROM events WHERE job_id = ?1 AND n = ?17)
