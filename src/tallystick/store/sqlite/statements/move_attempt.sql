-- move_attempt: one attempt ends, by its holder while the lease is live (?9) or by a sweep once it is not.
-- No row changed: the report is stale, or the sweep came too late.
UPDATE attempts
   SET status = ?5, reason = ?6, charged = ?7, finished_at = ?8
 WHERE job_id = ?1 AND unit = '' AND attempt = ?2 AND lease_id = ?3 AND status = ?4
   AND (lease_epoch = ?10 AND lease_expires_at > ?11) = ?9
