-- end_jobs: attempts end, by their holders while the lease is live, and with each
-- its job: steps 2 and 3 of the start message, where the semaphore falls, the closer digit is written if it reached
-- zero, and the result with it, and the last step where it came along; a fact each.
-- Returns the places whose fence held, those of them whose job can end so, and those that ended: if the last two differ,
-- a row was changed after it was seen, and the caller begins again. A fact or a step whose place in the chain the other
-- kind has taken is as good as a fence that did not hold. No row is locked before it is changed: a row
-- is changed where it was seen (`ctid`) or not at all. Job rows go before attempt rows, job by job.
-- takes: list jsonb, epoch text, lease_now int, wall_now int, root_before int, root_after int, start_before int, start_after int
-- each: Fence, reason text, charged bigint, status text, state text, result text, error text, error_code text,
--   error_message text, type text, at bigint, of_attempt bigint, payload text, Link, step jsonb
WITH request AS (
  SELECT place, @each(r) FROM jsonb_array_elements(:list) WITH ORDINALITY AS listed (r, place)
), clock AS MATERIALIZED (
  SELECT store_ms(:lease_now) AS now, store_ms(:wall_now) AS wall
), found AS MATERIALIZED (
  SELECT request.*, clock.wall, j.*, a.*
    FROM clock
   CROSS JOIN (SELECT * FROM request ORDER BY job_id) AS request
   CROSS JOIN LATERAL (
         SELECT a.ctid AS attempt_at
           FROM attempts AS a
          WHERE a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.attempt
            AND a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
            AND a.lease_epoch = :epoch AND a.lease_expires_at > clock.now
            AND (SELECT s.n FROM steps AS s WHERE s.job_id = request.job_id AND s.n = request.n AND s.misplaced IS NULL) IS NULL
            AND (request.step = 'null'
                 OR (SELECT e.n FROM events AS e WHERE e.job_id = request.job_id AND e.n = (request.step -> 1 ->> 0)::bigint) IS NULL)
         OFFSET 0) AS a
   CROSS JOIN LATERAL (
         SELECT j.ctid AS job_at,
                j.attempt = request.attempt AND j.semaphore = 1
                AND j.state = 'IN_PROGRESS' AND j.root_ledger = :root_before AND j.start_ledger = :start_before AS sound
           FROM jobs AS j
          WHERE j.job_id = request.job_id
         OFFSET 0) AS j
), closed AS (
  UPDATE jobs
     SET state = found.state, result = found.result, error = found.error, error_code = found.error_code,
         error_message = found.error_message, hold = NULL, hold_reason = NULL, semaphore = semaphore - 1,
         root_ledger = :root_after, start_ledger = :start_after,
         start_acked_at = found.wall, completed_at = found.wall, updated_at = found.wall,
         head_n = found.n, head_hash = found.event_hash, rev = rev + 1
    FROM found
   WHERE jobs.ctid = found.job_at AND found.sound
  RETURNING found.place, found.attempt_at, found.status, found.reason, found.charged, found.wall, found.job_id, found.n,
            found.type, found.at, found.of_attempt, found.payload, found.prev_hash, found.event_hash, found.step
), ended AS (
  UPDATE attempts
     SET status = closed.status, reason = closed.reason, charged = closed.charged, finished_at = closed.wall
    FROM closed
   WHERE attempts.ctid = closed.attempt_at
  RETURNING closed.place, closed.job_id, closed.n, closed.type, closed.at, closed.of_attempt, closed.payload,
            closed.prev_hash, closed.event_hash, closed.step
), written AS (
  INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
  SELECT job_id, n, type, at, of_attempt, payload, prev_hash, event_hash FROM ended
), stepped AS (
  INSERT INTO steps (job_id, attempt, @names(Recorded), @names(Link))
  SELECT job_id, of_attempt, @fields(Recorded, s), @fields(Link, s)
    FROM ended
   CROSS JOIN LATERAL (SELECT @read(Recorded, step -> 0), @read(Link, step -> 1)) AS s
   WHERE step <> 'null'
)
SELECT (SELECT coalesce(array_agg(place), '{}') FROM found),
       (SELECT coalesce(array_agg(place) FILTER (WHERE sound), '{}') FROM found),
       (SELECT coalesce(array_agg(place), '{}') FROM ended)
