-- attempts: every attempt at a job itself, oldest first.
SELECT attempt, status, lease_id, lease_owner, lease_epoch, lease_expires_at, reason, charged, started_at, finished_at,
       guid
  FROM attempts
 WHERE job_id = ?1 AND unit = ''
 ORDER BY attempt
