-- end_attempts: attempts end, by their holders while the lease is live; each job
-- is due again after its delay, or held; a fact each. A hold that was set meanwhile stays.
-- Returns and locks as `end_jobs`. A due time is measured from now by the store's clock, so a worker whose clock is wrong
-- delays no job.
-- takes: list jsonb, epoch text, lease_now int, wall_now int
-- each: Fence, reason text, charged bigint, delay_ms bigint, hold text, hold_reason text, type text, at bigint,
--   of_attempt bigint, payload text, Link
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
