-- insert_steps: record inline steps, each under its fence; a row is its own event.
-- Returns the places in the list that were written; the others are stale, or an event stands at their place of the chain,
-- and changed nothing. The list is in the order of jobs: the attempt rows are locked first, one after the other, and the time is
-- read once, after that. Each is looked up on its own, so that a plan made while the table was empty is as good as any.
-- Reads attempts, writes steps.
-- takes: list jsonb, epoch text, lease_now int
-- each: Fence, Recorded, Link
WITH request AS (
  SELECT place, @each(r) FROM jsonb_array_elements(:list) WITH ORDINALITY AS listed (r, place)
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
  SELECT store_ms(:lease_now) AS now FROM (SELECT count(*) FROM held) AS locked
), live AS NOT MATERIALIZED (
  SELECT held.* FROM clock CROSS JOIN held WHERE held.lease_epoch = :epoch AND held.lease_expires_at > clock.now
), written AS (
  INSERT INTO steps (job_id, attempt, @names(Recorded), @names(Link))
  SELECT job_id, attempt, @fields(Recorded), @fields(Link) FROM live
)
SELECT place FROM live
