-- attempts: the whole table; a lease's end is on the boot clock, everything else on the wall clock.
SELECT job_id, attempt, status, reason, charged, finished_at, lease_expires_at, lease_id, guid
  FROM attempts
 ORDER BY job_id, attempt
