-- end_attempt: the attempt ends, by its holder while the lease is live (?9 = 1) or by a sweep once it is not (?9 = 0).
-- No row changed: the report is stale, or the sweep came too late.
UPDATE attempts
   SET status = ?4, reason = ?5, charged = ?6, finished_at = ?10
 WHERE job_id = ?1 AND unit = '' AND attempt = ?2 AND lease_id = ?3
   AND status = 'IN_PROGRESS' AND (lease_epoch = ?7 AND lease_expires_at > ?8) = ?9
