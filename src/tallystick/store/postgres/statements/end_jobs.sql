-- end_jobs: attempts end, by their holders while the lease is live (`live`) or by a sweep once it is not, and with each
-- its job: steps 2 and 3 of the start message, where the semaphore falls, the closer digit is written if it reached
-- zero, and the result with it; a fact each.
-- Returns the places whose attempt ended and the places whose job ended too: they must be the same, otherwise the
-- caller rolls back. Locks and reads the time as `end_attempts`.
-- $1 the list, $2 the clock the leases are on, $3 and $4 lease and wall time if they are not this server's.
WITH request AS (
  SELECT place, r ->> 0 AS job_id, (r ->> 1)::bigint AS attempt, r ->> 2 AS lease_id, r ->> 3 AS reason,
         (r ->> 4)::bigint AS charged, (r ->> 5)::boolean AS live, r ->> 6 AS status, r ->> 7 AS state,
         r ->> 8 AS result, r ->> 9 AS error, r ->> 10 AS error_code, r ->> 11 AS error_message,
         (r ->> 12)::bigint AS n, r ->> 13 AS type, (r ->> 14)::bigint AS at, (r ->> 15)::bigint AS of_attempt,
         r ->> 16 AS payload, decode(r ->> 17, 'hex') AS prev_hash, decode(r ->> 18, 'hex') AS event_hash
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
), held AS MATERIALIZED (
  SELECT request.*, a.lease_epoch, a.lease_expires_at
    FROM request
    JOIN jobs AS j ON j.job_id = request.job_id
    JOIN attempts AS a ON a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
   WHERE a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
   ORDER BY request.job_id
     FOR NO KEY UPDATE OF j, a
), clock AS MATERIALIZED (
  SELECT store_ms($3::bigint) AS now, store_ms($4::bigint) AS wall FROM (SELECT count(*) FROM held) AS locked
), ended AS (
  UPDATE attempts
     SET status = held.status, reason = held.reason, charged = held.charged, finished_at = clock.wall
    FROM held CROSS JOIN clock
   WHERE attempts.job_id = held.job_id AND attempts.unit = '' AND attempts.attempt = held.attempt
     AND (held.lease_epoch = $2 AND held.lease_expires_at > clock.now) = held.live
  RETURNING held.*, clock.wall
), closed AS (
  UPDATE jobs
     SET state = ended.state, result = ended.result, error = ended.error, error_code = ended.error_code,
         error_message = ended.error_message, semaphore = semaphore - 1,
         start_ledger = start_ledger + 11000000000 + CASE WHEN semaphore - 1 = 0 THEN 100100000000 ELSE 0 END,
         start_acked_at = ended.wall, completed_at = ended.wall, updated_at = ended.wall,
         head_n = ended.n, head_hash = ended.event_hash, rev = rev + 1
    FROM ended
   WHERE jobs.job_id = ended.job_id AND jobs.attempt = ended.attempt AND jobs.state = 'IN_PROGRESS'
     AND jobs.semaphore = 1
     AND jobs.start_ledger / 10000000000 % 10 = 0 AND jobs.start_ledger / 1000000000 % 10 = 0
  RETURNING ended.*
), written AS (
  INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
  SELECT job_id, n, type, at, of_attempt, payload, prev_hash, event_hash FROM closed
)
SELECT (SELECT coalesce(array_agg(place), '{}') FROM ended), (SELECT coalesce(array_agg(place), '{}') FROM closed)
