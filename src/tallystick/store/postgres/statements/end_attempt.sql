-- end_attempt: one attempt ends, by its holder while the lease is live ($9) or by a sweep once it is not.
-- No row changed: the report is stale, or the sweep came too late.
-- $7 the clock the leases are on, $8 that clock's time if it is not this server's, $10 wall time.
UPDATE attempts
   SET status = $4, reason = $5, charged = $6::bigint, finished_at = $10::bigint
 WHERE job_id = $1 AND unit = '' AND attempt = $2::bigint AND lease_id = $3
   AND status = 'IN_PROGRESS' AND (lease_epoch = $7 AND lease_expires_at > store_ms($8::bigint)) = $9::boolean
