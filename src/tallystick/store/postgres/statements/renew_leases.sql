-- renew_leases: move the end of every lease in the list that is live; an expired one is never revived.
-- Returns the fences that are still held. A row that somebody holds now (a user's transaction, which renews itself)
-- is skipped and counts as held, so that one long transaction delays the renewal of no other lease.
-- $1 the list, $2 the clock the leases are on, $3 that clock's time if it is not this server's, $4 how long.
WITH request AS MATERIALIZED (
  SELECT r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id
    FROM jsonb_array_elements($1::jsonb) AS r
), free AS MATERIALIZED (
  SELECT a.job_id, a.attempt, a.lease_id, a.lease_epoch, a.lease_expires_at
    FROM request
    JOIN attempts AS a ON a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
   WHERE a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
   ORDER BY request.job_id
     FOR NO KEY UPDATE OF a SKIP LOCKED
), clock AS MATERIALIZED (
  SELECT store_ms($3::bigint) AS now FROM (SELECT count(*) FROM free) AS locked
), renewed AS (
  UPDATE attempts
     SET lease_expires_at = clock.now + $4::bigint
    FROM free CROSS JOIN clock
   WHERE attempts.job_id = free.job_id AND attempts.unit = '' AND attempts.attempt = free.attempt
     AND attempts.lease_id = free.lease_id AND attempts.status = 'IN_PROGRESS'
     AND free.lease_epoch = $2 AND free.lease_expires_at > clock.now
)
SELECT a.job_id, a.attempt, a.lease_id
  FROM request
 CROSS JOIN clock
  JOIN attempts AS a ON a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
 WHERE a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
   AND a.lease_epoch = $2 AND a.lease_expires_at > clock.now
