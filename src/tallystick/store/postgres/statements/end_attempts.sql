-- end_attempts: attempts end, by their holders while the lease is live (`live`) or by a sweep once it is not; each job
-- is due again after its delay, or held; a fact each. A hold that somebody set meanwhile stays.
-- Returns the places whose fence held, those whose attempt ended, and those whose job went with it: they must be the
-- same, otherwise the caller rolls back; a row that somebody changed before we had it is then seen afresh. Job rows are
-- locked before attempt rows, job by job; the time is read once, after that. A due time is measured from now by the
-- store's clock, so a worker whose clock is wrong delays nobody.
-- $1 the list, $2 the clock the leases are on, $3 and $4 lease and wall time if they are not this server's.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id, r ->> 3 AS reason,
         (r ->> 4)::bigint AS charged, (r ->> 5)::boolean AS live, (r ->> 6)::bigint AS delay_ms, r ->> 7 AS hold,
         r ->> 8 AS hold_reason, (r ->> 9)::bigint AS n, r ->> 10 AS type, (r ->> 11)::bigint AS at,
         (r ->> 12)::bigint AS of_attempt, r ->> 13 AS payload, decode(r ->> 14, 'hex') AS prev_hash,
         decode(r ->> 15, 'hex') AS event_hash
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
), held AS MATERIALIZED (
  SELECT request.*, j.job_at, a.*
    FROM (SELECT * FROM request ORDER BY job_id) AS request
   CROSS JOIN LATERAL (
         SELECT j.ctid AS job_at FROM jobs AS j WHERE j.job_id = request.job_id FOR NO KEY UPDATE) AS j
   CROSS JOIN LATERAL (
         SELECT a.ctid AS attempt_at, a.lease_epoch, a.lease_expires_at
           FROM attempts AS a
          WHERE a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
            AND a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
            FOR NO KEY UPDATE) AS a
), clock AS MATERIALIZED (
  SELECT store_ms($3::bigint) AS now, store_ms($4::bigint) AS wall FROM (SELECT count(*) FROM held) AS locked
), judged AS MATERIALIZED (
  SELECT held.*, clock.wall
    FROM held CROSS JOIN clock
   WHERE (held.lease_epoch = $2 AND held.lease_expires_at > clock.now) = held.live
), ended AS (
  UPDATE attempts
     SET status = 'ABORTED', reason = judged.reason, charged = judged.charged, finished_at = judged.wall
    FROM judged
   WHERE attempts.ctid = judged.attempt_at
  RETURNING judged.*
), released AS (
  UPDATE jobs
     SET ready_at = ended.wall + ended.delay_ms, hold = coalesce(ended.hold, jobs.hold),
         hold_reason = coalesce(ended.hold_reason, jobs.hold_reason),
         head_n = ended.n, head_hash = ended.event_hash, updated_at = ended.wall, rev = rev + 1
    FROM ended
   WHERE jobs.ctid = ended.job_at AND jobs.attempt = ended.attempt
     AND jobs.state IN ('IN_PROGRESS', 'CANCELLING')
     AND jobs.ready_at IS NULL
  RETURNING ended.*
), written AS (
  INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
  SELECT job_id, n, type, at, of_attempt, payload, prev_hash, event_hash FROM released
)
SELECT (SELECT coalesce(array_agg(place), '{}') FROM judged), (SELECT coalesce(array_agg(place), '{}') FROM ended),
       (SELECT coalesce(array_agg(place), '{}') FROM released)
