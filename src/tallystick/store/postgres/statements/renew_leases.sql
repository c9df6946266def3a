-- renew_leases: move the end of every lease in the list that is live; an expired one is never revived.
-- Returns the fences that are still held. A row that is held now (a user's transaction, which renews itself)
-- is skipped and counts as held, so that one long transaction delays the renewal of no other lease.
-- $1 the list, $2 the clock the leases are on, $3 that clock's time if it is not this server's, $4 how long.
WITH request AS MATERIALIZED (
  SELECT r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id
    FROM jsonb_array_elements($1::jsonb) AS r
   ORDER BY 1
), free AS MATERIALIZED (
  SELECT a.*
    FROM request
   CROSS JOIN LATERAL (
         SELECT a.ctid AS attempt_at, a.lease_epoch, a.lease_expires_at
           FROM attempts AS a
          WHERE a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
            AND a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
            FOR NO KEY UPDATE SKIP LOCKED) AS a
), clock AS MATERIALIZED (
  SELECT store_ms($3::bigint) AS now FROM (SELECT count(*) FROM free) AS locked
), renewed AS (
  UPDATE attempts
     SET lease_expires_at = clock.now + $4::bigint
    FROM free CROSS JOIN clock
   WHERE attempts.ctid = free.attempt_at AND attempts.status = 'IN_PROGRESS'
     AND free.lease_epoch = $2 AND free.lease_expires_at > clock.now
)
SELECT request.job_id, request.attempt, request.lease_id
  FROM clock
 CROSS JOIN request
 CROSS JOIN LATERAL (
       SELECT a.lease_expires_at
         FROM attempts AS a
        WHERE a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
          AND a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS' AND a.lease_epoch = $2
       OFFSET 0) AS a
 WHERE a.lease_expires_at > clock.now
