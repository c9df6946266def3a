-- insert_answered_wait: a wait whose message was there before it: opened and answered in one breath.
-- No row: an event stands at its place of the chain.
INSERT INTO steps (
  job_id, dimension, name, occurrence, kind, result, notes, attempt, completed_at, n, prev_hash, event_hash,
  state, ledger, created_at
)
SELECT ?1, ?2, ?3, ?4, ?12, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'SUCCEEDED', 1111000000001, ?8
 WHERE NOT EXISTS (SELECT 1 FROM events WHERE job_id = ?1 AND n = ?9)
