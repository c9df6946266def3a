-- move_effect_attempts: the attempt at an effect comes to its end, or has the lease of a further call (else null).
-- No row changed: it has ended before.
-- takes: job_id, unit, attempt, status, lease_id, lease_owner, lease_epoch, lease_expires_at, finished_at
UPDATE attempts
   SET status = :status, lease_id = coalesce(:lease_id, lease_id), lease_owner = coalesce(:lease_owner, lease_owner),
       lease_epoch = coalesce(:lease_epoch, lease_epoch),
       lease_expires_at = coalesce(:lease_expires_at, lease_expires_at), finished_at = :finished_at
 WHERE job_id = :job_id AND unit = :unit AND attempt = :attempt AND status = 'COMMITTED'
