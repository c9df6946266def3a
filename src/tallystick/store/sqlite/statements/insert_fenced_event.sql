-- insert_fenced_event: append facts under their fences.
-- Fewer rows than given: a lease is no longer the live one. Reads attempts, writes events.
WITH given (job_id, attempt, lease_id, n, type, at, about, payload, prev_hash, event_hash, epoch, boot) AS (
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
)
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
SELECT given.job_id, n, type, at, about, payload, prev_hash, event_hash
  FROM given CROSS JOIN attempts AS live
 WHERE live.job_id = given.job_id AND live.unit = '' AND live.attempt = given.attempt AND live.lease_id = given.lease_id
   AND live.status = 'IN_PROGRESS' AND live.lease_epoch = given.epoch AND live.lease_expires_at > given.boot
