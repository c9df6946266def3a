-- insert_fenced_events: append facts, each under its fence.
-- Returns the places in the list that were written; the others are stale. Locks and reads the time as `insert_steps`.
-- $1 the list, $2 the clock the leases are on, $3 that clock's time if it is not this server's.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id, (r ->> 3)::bigint AS n,
         r ->> 4 AS type, (r ->> 5)::bigint AS at, (r ->> 6)::bigint AS of_attempt, r ->> 7 AS payload,
         decode(r ->> 8, 'hex') AS prev_hash, decode(r ->> 9, 'hex') AS event_hash
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
), held AS MATERIALIZED (
  SELECT request.*, a.lease_epoch, a.lease_expires_at
    FROM (SELECT * FROM request ORDER BY job_id) AS request
   CROSS JOIN LATERAL (
         SELECT a.lease_epoch, a.lease_expires_at
           FROM attempts AS a
          WHERE a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
            AND a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
            FOR NO KEY UPDATE) AS a
), clock AS MATERIALIZED (
  SELECT store_ms($3::bigint) AS now FROM (SELECT count(*) FROM held) AS locked
), live AS MATERIALIZED (
  SELECT held.* FROM held CROSS JOIN clock WHERE held.lease_epoch = $2 AND held.lease_expires_at > clock.now
), written AS (
  INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
  SELECT job_id, n, type, at, of_attempt, payload, prev_hash, event_hash FROM live
)
SELECT place FROM live
