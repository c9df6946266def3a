-- insert_answered_wait: a wait whose message was there before it: opened and answered in one breath.
-- No row: an event stands at its place of the chain.
INSERT INTO steps (
  job_id, dimension, name, occurrence, kind, result, notes, attempt, completed_at, n, prev_hash, event_hash,
  state, ledger, created_at
)
SELECT $1, $2::bigint, $3, $4::bigint, $12, $5, $6, $7::bigint, $8::bigint, $9::bigint, $10::bytea, $11::bytea, 'SUCCEEDED',
       1111000000001, $8::bigint
 WHERE NOT EXISTS (SELECT 1 FROM events WHERE job_id = $1 AND n = $9::bigint)
