-- claim_chosen: take these jobs of queues with limits, as `claim_jobs` takes those that it finds. They were chosen under the lock of
-- their queues; one that is held, was taken or ended meanwhile is left out, without waiting.
-- takes: jobs text[], handlers text[], leases text[], owner text, lease_ms int, epoch text, lease_now int, wall_now int,
--   suspects int, root_ledger int, start_ledger int, attempts_default int, claimed_first text, claimed_again text, hooks text
WITH clock AS MATERIALIZED (
  SELECT store_ms(:lease_now) AS now, store_ms(:wall_now) AS wall
), due AS MATERIALIZED (
  SELECT asked.place AS asked_at, @part(claimed, j)
    FROM clock
   CROSS JOIN unnest(:jobs) WITH ORDINALITY AS asked (job_id, place)
   CROSS JOIN LATERAL (
         SELECT *, held.ctid
           FROM jobs AS held
          WHERE held.job_id = asked.job_id AND held.ready_at <= clock.wall AND held.hold IS NULL AND @part(runnable, held)
            FOR NO KEY UPDATE SKIP LOCKED) AS j
   CROSS JOIN LATERAL (@part(past, j)) AS past
), found AS MATERIALIZED (
  SELECT due.*, clock.now, clock.wall, row_number() OVER (ORDER BY asked_at) AS place
    FROM clock
   CROSS JOIN due
   WHERE NOT suspect
      OR (:suspects > 0 AND asked_at = (SELECT min(other.asked_at) FROM due AS other WHERE other.suspect))
), @part(taking, found)
