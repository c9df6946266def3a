-- renew_own_lease: a user's transaction renews its lease when it ends, because heartbeats passed it by; only when less
-- than half is left, so that short ones cost nothing. Runs under `hold_fence`.
-- $1 job, $2 attempt, $3 lease, $4 that clock's time if it is not this server's, $5 how long.
UPDATE attempts
   SET lease_expires_at = store_ms($4::bigint) + $5::bigint
 WHERE job_id = $1 AND unit = '' AND attempt = $2::bigint AND lease_id = $3 AND status = 'IN_PROGRESS'
   AND lease_expires_at > store_ms($4::bigint)
   AND lease_expires_at < store_ms($4::bigint) + $5::bigint / 2
