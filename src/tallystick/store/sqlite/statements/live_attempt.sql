-- live_attempt: the fence on its own, for a bundle that reads before it writes. No row: the lease is not the live one.
SELECT 1
  FROM attempts
 WHERE job_id = ?1 AND unit = '' AND attempt = ?2 AND lease_id = ?3
   AND status = 'IN_PROGRESS' AND lease_epoch = ?4 AND lease_expires_at > ?5
