-- picture_leases: the attempt that holds a job, or an effect of it, or is committed, and whether its lease is live by this clock.
-- No row: nobody holds it.
-- takes: job_id, epoch, boot, unit
SELECT attempt, lease_id, status, lease_epoch = :epoch AND lease_expires_at > :boot, guid
  FROM attempts
 WHERE job_id = :job_id AND unit = :unit AND status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED')
