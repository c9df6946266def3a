-- move_attempts: one attempt ends, by its holder while the lease is live (`live`) or by a sweep once it is not.
-- No row changed: the report is stale, or the sweep came too late.
-- takes: MoveAttempt, at, epoch, boot
UPDATE attempts
   SET status = :status, reason = :reason, charged = :charged, finished_at = :at
 WHERE job_id = :job_id AND unit = '' AND attempt = :attempt AND lease_id = :lease_id AND status = :before
   AND (lease_epoch = :epoch AND lease_expires_at > :boot) = :live
