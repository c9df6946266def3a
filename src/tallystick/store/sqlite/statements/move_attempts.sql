-- move_attempts: attempts end, each by its holder while the lease is live (`live`) or by a sweep once it is not.
-- Fewer rows changed than given: a report is stale, or the sweep came too late.
-- takes: MoveAttempt, at, epoch, boot
-- row: (@values(MoveAttempt), :at, :epoch, :boot)
UPDATE attempts
   SET status = given.status, reason = given.reason, charged = given.charged, finished_at = given.at
  FROM @given
 WHERE attempts.job_id = given.job_id AND attempts.unit = '' AND attempts.attempt = given.attempt
   AND attempts.lease_id = given.lease_id AND attempts.status = given.before
   AND (attempts.lease_epoch = given.epoch AND attempts.lease_expires_at > given.boot) = given.live
