-- insert_step: record an inline step under the fence; the row is its own event.
-- NOT NULL failed on job_id: this lease is no longer the live one. One row and no trigger, so SQLite needs no
-- statement journal: the fence as a scalar is a third faster than as a WHERE. Reads attempts, writes steps.
INSERT INTO steps (
  job_id, attempt, dimension, name, occurrence, kind, state, ledger, result, error, notes, created_at, completed_at, n,
  prev_hash, event_hash
)
VALUES (
  (SELECT job_id
     FROM attempts
    WHERE job_id = ?1 AND unit = '' AND attempt = ?2 AND lease_id = ?3
      AND status = 'IN_PROGRESS' AND lease_epoch = ?17 AND lease_expires_at > ?18),
  ?2, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?14, ?15, ?16
)
