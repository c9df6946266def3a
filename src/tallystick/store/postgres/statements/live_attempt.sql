-- live_attempt: the fence on its own, held until the transaction ends, for a bundle that reads before it writes.
-- No row: the lease is not the live one.
-- $1 job, $2 attempt, $3 lease, $4 the clock the leases are on, $5 that clock's time if it is not this server's.
WITH held AS MATERIALIZED (
  SELECT lease_epoch, lease_expires_at
    FROM attempts
   WHERE job_id = $1 AND unit = '' AND attempt = $2::bigint AND lease_id = $3 AND status = 'IN_PROGRESS'
     FOR NO KEY UPDATE
)
SELECT 1 FROM held WHERE lease_epoch = $4 AND lease_expires_at > store_ms($5::bigint)
