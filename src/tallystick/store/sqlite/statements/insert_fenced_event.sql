-- insert_fenced_event: append a fact under the fence.
-- NOT NULL failed on job_id: this lease is no longer the live one. Reads attempts, writes events.
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
VALUES (
  (SELECT job_id
     FROM attempts
    WHERE job_id = ?1 AND unit = '' AND attempt = ?2 AND lease_id = ?3
      AND status = 'IN_PROGRESS' AND lease_epoch = ?11 AND lease_expires_at > ?12),
  ?4, ?5, ?6, ?7, ?8, ?9, ?10
)
