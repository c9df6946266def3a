-- end_attempts: attempts end, each by its holder while the lease is live. Fewer rows changed than given: a report is stale.
-- takes: job_id, attempt, lease_id, status, reason, charged, epoch, boot, at
-- row: (:job_id, :attempt, :lease_id, :status, :reason, :charged, :epoch, :boot, :at)
UPDATE attempts
   SET status = given.status, reason = given.reason, charged = given.charged, finished_at = given.at
  FROM @given
 WHERE attempts.job_id = given.job_id AND unit = '' AND attempts.attempt = given.attempt
   AND attempts.lease_id = given.lease_id AND attempts.status = 'IN_PROGRESS'
   AND lease_epoch = given.epoch AND lease_expires_at > given.boot
