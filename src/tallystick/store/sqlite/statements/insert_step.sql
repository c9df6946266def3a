-- insert_step: record inline steps under their fences; each row is its own event.
-- Fewer rows than given: a lease is no longer the live one, or an event stands at that place of the chain. Reads attempts
-- and events, writes steps.
WITH given (
  job_id, attempt, lease_id, dimension, name, occurrence, kind, state, ledger, result, error, notes, at, n, prev_hash,
  event_hash, epoch, boot
) AS (
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
)
INSERT INTO steps (
  job_id, attempt, dimension, name, occurrence, kind, state, ledger, result, error, notes, created_at, completed_at, n,
  prev_hash, event_hash
)
SELECT given.job_id, given.attempt, dimension, name, occurrence, kind, state, ledger, result, error, notes, at, at, n,
       prev_hash, event_hash
  FROM given CROSS JOIN attempts AS live
 WHERE live.job_id = given.job_id AND live.unit = '' AND live.attempt = given.attempt AND live.lease_id = given.lease_id
   AND live.status = 'IN_PROGRESS' AND live.lease_epoch = given.epoch AND live.lease_expires_at > given.boot
   AND NOT EXISTS (SELECT 1 FROM events WHERE events.job_id = given.job_id AND events.n = given.n)
