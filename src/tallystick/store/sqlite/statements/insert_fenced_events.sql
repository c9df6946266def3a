-- insert_fenced_events: append facts under their fences.
-- Fewer rows than given: a lease is no longer the live one. Reads attempts, writes events.
-- takes: StoredEvent, holder, lease_id, epoch, boot
-- row: (@values(StoredEvent), :holder, :lease_id, :epoch, :boot)
WITH given (@takes) AS (VALUES @rows)
INSERT INTO events (@names(StoredEvent))
SELECT @names(StoredEvent, given)
  FROM given CROSS JOIN attempts AS live
 WHERE live.job_id = given.job_id AND live.unit = '' AND live.attempt = given.holder AND live.lease_id = given.lease_id
   AND live.status = 'IN_PROGRESS' AND live.lease_epoch = given.epoch AND live.lease_expires_at > given.boot
