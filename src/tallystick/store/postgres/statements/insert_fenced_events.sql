-- insert_fenced_events: append facts, each under its fence.
-- Returns the places in the list that were written; the others are stale. Locks and reads the time as `insert_steps`.
-- takes: list jsonb, epoch text, lease_now int
-- each: StoredEvent, holder bigint, lease_id text
WITH request AS (
  SELECT place, @each(r) FROM jsonb_array_elements(:list) WITH ORDINALITY AS listed (r, place)
), held AS MATERIALIZED (
  SELECT request.*, a.lease_epoch, a.lease_expires_at
    FROM (SELECT * FROM request ORDER BY job_id) AS request
   CROSS JOIN LATERAL (
         SELECT a.lease_epoch, a.lease_expires_at
           FROM attempts AS a
          WHERE a.job_id = request.job_id AND a.unit = '' AND a.attempt = request.holder
            AND a.lease_id = request.lease_id AND a.status = 'IN_PROGRESS'
            FOR NO KEY UPDATE) AS a
), clock AS MATERIALIZED (
  SELECT store_ms(:lease_now) AS now FROM (SELECT count(*) FROM held) AS locked
), live AS MATERIALIZED (
  SELECT held.* FROM held CROSS JOIN clock WHERE held.lease_epoch = :epoch AND held.lease_expires_at > clock.now
), written AS (
  INSERT INTO events (@names(StoredEvent)) SELECT @names(StoredEvent) FROM live
)
SELECT place FROM live
