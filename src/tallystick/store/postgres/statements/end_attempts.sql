-- end_attempts: attempts end, by their holders while the lease is live; each job
-- is due again after its delay, or held; a fact each. A hold that somebody set meanwhile stays.
-- Returns and locks as `end_jobs`. A due time is measured from now by the store's clock, so a worker whose clock is wrong
-- delays nobody.
-- $1 the list, $2 the clock the leases are on, $3 and $4 lease and wall time if they are not this server's.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id, r ->> 3 AS reason,
         (r ->> 4)::bigint AS charged, (r ->> 5)::bigint AS delay_ms, r ->> 6 AS hold,
         r ->> 7 AS hold_reason, (r ->> 8)::bigint AS n, r ->> 9 AS type, (r ->> 10)::bigint AS at,
         (r ->> 11)::bigint AS of_attempt, r ->> 12 AS payload, decode(r ->> 13, 'hex') AS prev_hash,
         decode(r ->> 14, 'hex') AS event_hash
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
), clock AS MATERIALIZED (
  SELECT store_ms($3::bigint) AS now, store_ms($4::bigint) AS wall
), found AS MATERIALIZED (
  SELECT request.*, clock.wall, j.*, a.*
    FROM clock
   CROSS JOIN (SELECT * FROM request ORDER BY job_id) AS request
   CROSS JOIN LATERAL (
         SELECT a.ctid AS attempt_at
           FROM attempts AS a
          WHERE a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
            AND a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
            AND a.lease_epoch = $2 AND a.lease_expires_at > clock.now
         OFFSET 0) AS a
   CROSS JOIN LATERAL (
         SELECT j.ctid AS job_at,
                j.attempt = request.attempt AND j.state IN ('IN_PROGRESS', 'CANCELLING') AND j.ready_at IS NULL AS sound
           FROM jobs AS j
          WHERE j.job_id = request.job_id
         OFFSET 0) AS j
), released AS (
  UPDATE jobs
     SET ready_at = found.wall + found.delay_ms, hold = coalesce(found.hold, jobs.hold),
         hold_reason = coalesce(found.hold_reason, jobs.hold_reason),
         head_n = found.n, head_hash = found.event_hash, updated_at = found.wall, rev = rev + 1
    FROM found
   WHERE jobs.ctid = found.job_at AND found.sound
  RETURNING found.*
), ended AS (
  UPDATE attempts
     SET status = 'ABORTED', reason = released.reason, charged = released.charged, finished_at = released.wall
    FROM released
   WHERE attempts.ctid = released.attempt_at
  RETURNING released.*
), written AS (
  INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
  SELECT job_id, n, type, at, of_attempt, payload, prev_hash, event_hash FROM ended
)
SELECT (SELECT coalesce(array_agg(place), '{}') FROM found),
       (SELECT coalesce(array_agg(place) FILTER (WHERE sound), '{}') FROM found),
       (SELECT coalesce(array_agg(place), '{}') FROM ended)
