-- insert_step: record an inline step under the fence; the row is its own event.
-- No row: this lease is no longer the live one. Reads attempts, writes steps.
INSERT INTO steps (
  job_id, attempt, dimension, name, occurrence, kind, state, ledger, result, error, notes, created_at, completed_at, n,
  prev_hash, event_hash
)
SELECT job_id, attempt, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?14, ?15, ?16
  FROM attempts
 WHERE job_id = ?1 AND unit = '' AND attempt = ?2 AND lease_id = ?3
   AND status = 'IN_PROGRESS' AND lease_epoch = ?17 AND lease_expires_at > ?18
