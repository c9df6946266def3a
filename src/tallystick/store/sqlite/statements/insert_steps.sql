-- insert_steps: record inline steps under their fences; each row is its own event.
-- Fewer rows than given: a lease is no longer the live one, or an event stands at that place of the chain. Reads attempts
-- and events, writes steps.
-- FAIL, not ABORT, so that SQLite keeps no statement journal: the caller undoes what came before a refused row.
-- takes: job_id, attempt, lease_id, Recorded, Link, epoch, boot
-- row: (:job_id, :attempt, :lease_id, @values(Recorded), @values(Link), :epoch, :boot)
WITH given (@takes) AS (VALUES @rows)
INSERT OR FAIL INTO steps (job_id, attempt, @names(Recorded), @names(Link))
SELECT given.job_id, given.attempt, @fields(Recorded, given), @fields(Link, given)
  FROM given CROSS JOIN attempts AS live
 WHERE live.job_id = given.job_id AND live.unit = '' AND live.attempt = given.attempt AND live.lease_id = given.lease_id
   AND live.status = 'IN_PROGRESS' AND live.lease_epoch = given.epoch AND live.lease_expires_at > given.boot
   AND NOT EXISTS (SELECT 1 FROM events WHERE events.job_id = given.job_id AND events.n = given.n)
