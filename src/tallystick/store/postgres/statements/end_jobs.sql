-- end_jobs: attempts end, by their holders while the lease is live (`live`) or by a sweep once it is not, and with each
-- its job: steps 2 and 3 of the start message, where the semaphore falls, the closer digit is written if it reached
-- zero, and the result with it; a fact each.
-- Returns the places whose fence held, those whose attempt ended, and those whose job went with it: they must be the
-- same, otherwise the caller rolls back; a row that somebody changed before we had it is then seen afresh. Locks and
-- reads the time as `end_attempts`.
-- $1 the list, $2 the clock the leases are on, $3 and $4 lease and wall time if they are not this server's.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id, r ->> 3 AS reason,
         (r ->> 4)::bigint AS charged, (r ->> 5)::boolean AS live, r ->> 6 AS status, r ->> 7 AS state,
         r ->> 8 AS result, r ->> 9 AS error, r ->> 10 AS error_code, r ->> 11 AS error_message,
         (r ->> 12)::bigint AS n, r ->> 13 AS type, (r ->> 14)::bigint AS at, (r ->> 15)::bigint AS of_attempt,
         r ->> 16 AS payload, decode(r ->> 17, 'hex') AS prev_hash, decode(r ->> 18, 'hex') AS event_hash
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
     SET status = judged.status, reason = judged.reason, charged = judged.charged, finished_at = judged.wall
    FROM judged
   WHERE attempts.ctid = judged.attempt_at
  RETURNING judged.*
), closed AS (
  UPDATE jobs
     SET state = ended.state, result = ended.result, error = ended.error, error_code = ended.error_code,
         error_message = ended.error_message, hold = NULL, hold_reason = NULL, semaphore = semaphore - 1,
         start_ledger = start_ledger + 11000000000 + CASE WHEN semaphore - 1 = 0 THEN 100100000000 ELSE 0 END,
         start_acked_at = ended.wall, completed_at = ended.wall, updated_at = ended.wall,
         head_n = ended.n, head_hash = ended.event_hash, rev = rev + 1
    FROM ended
   WHERE jobs.ctid = ended.job_at AND jobs.attempt = ended.attempt
     AND jobs.state = CASE ended.state WHEN 'CANCELLED' THEN 'CANCELLING' ELSE 'IN_PROGRESS' END
     AND jobs.semaphore = 1
     AND jobs.start_ledger / 10000000000 % 10 = 0 AND jobs.start_ledger / 1000000000 % 10 = 0
  RETURNING ended.*
), written AS (
  INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
  SELECT job_id, n, type, at, of_attempt, payload, prev_hash, event_hash FROM closed
)
SELECT (SELECT coalesce(array_agg(place), '{}') FROM judged), (SELECT coalesce(array_agg(place), '{}') FROM ended),
       (SELECT coalesce(array_agg(place), '{}') FROM closed)
