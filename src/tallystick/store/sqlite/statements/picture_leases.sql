-- picture_leases: the attempt that holds a job, and whether its lease is live by this clock. No row: nobody holds it.
SELECT attempt, lease_id, status, lease_epoch = ?2 AND lease_expires_at > ?3, guid
  FROM attempts
 WHERE job_id = ?1 AND unit = '' AND status IN ('LEASED', 'IN_PROGRESS')
