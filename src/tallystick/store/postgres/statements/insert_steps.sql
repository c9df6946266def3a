-- insert_steps: record inline steps, each under its fence; a row is its own event.
-- Returns the places in the list that were written; the others are stale, or an event stands at their place of the chain,
-- and changed nothing. The list is in the order of
-- jobs: the attempt rows are locked first, one after the other, and the time is read once, after that. Each is looked up
-- on its own, so that a plan made while the table was empty is as good as any. Reads attempts, writes steps.
-- $1 the list, $2 the clock the leases are on, $3 that clock's time if it is not this server's.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id, (r ->> 3)::bigint AS dimension,
         r ->> 4 AS name, (r ->> 5)::bigint AS occurrence, r ->> 6 AS kind, r ->> 7 AS state, (r ->> 8)::bigint AS ledger,
         r ->> 9 AS result, r ->> 10 AS error, r ->> 11 AS notes, (r ->> 12)::bigint AS at, (r ->> 13)::bigint AS n,
         decode(r ->> 14, 'hex') AS prev_hash, decode(r ->> 15, 'hex') AS event_hash
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
), held AS MATERIALIZED (
  SELECT request.*, a.lease_epoch, a.lease_expires_at
    FROM request
   CROSS JOIN LATERAL (
         SELECT a.lease_epoch, a.lease_expires_at
           FROM attempts AS a
          WHERE a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
            AND a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
            FOR NO KEY UPDATE) AS a
   WHERE (SELECT e.n FROM events AS e WHERE e.job_id = request.job_id AND e.n = request.n) IS NULL
), clock AS MATERIALIZED (
  SELECT store_ms($3::bigint) AS now FROM (SELECT count(*) FROM held) AS locked
), live AS NOT MATERIALIZED (
  SELECT held.* FROM clock CROSS JOIN held WHERE held.lease_epoch = $2 AND held.lease_expires_at > clock.now
), written AS (
  INSERT INTO steps (
    job_id, attempt, dimension, name, occurrence, kind, state, ledger, result, error, notes, created_at, completed_at, n,
    prev_hash, event_hash
  )
  SELECT job_id, attempt, dimension, name, occurrence, kind, state, ledger, result, error, notes, at, at, n,
         prev_hash, event_hash
    FROM live
)
SELECT place FROM live
