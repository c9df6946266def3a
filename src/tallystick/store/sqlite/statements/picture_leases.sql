-- picture_leases: the attempt that holds an effect of a job, or is committed, and whether its lease is live by this clock.
-- No row: nobody holds it.
-- takes: job_id, epoch, boot, unit
SELECT attempt, lease_id, status, lease_epoch = :epoch AND lease_expires_at > :boot, guid
  FROM attempts
 WHERE job_id = :job_id AND unit = :unit AND @is(held, status)
