-- claim_jobs: take the longest-waiting due jobs, best priority first, queue by queue; each gets an attempt with a
-- lease, its start message is entered the first time and redelivered from then on, and a fact is appended.
-- Returns what a worker needs. It does not wait: what another claim holds is skipped. Each queue and priority is one stretch
-- of the index `jobs_to_claim`, read in its order until there is enough, so the cost does not grow with the backlog.
-- Entries of jobs that were claimed before stay there until a vacuum; `floor` is an instant to begin at, behind them. A
-- job that cannot be claimed (with a live attempt, or a suspect too many) does not stop the others.
-- `suspects` says whether to take a suspect, and then only the first of them; `root_ledger` and `start_ledger` are the digits of a job
-- that is claimed for the first time; `only` is the one job that may be taken, if it is not empty. Queues with limits are left
-- to `claim_chosen`.
-- takes: queues text[], handlers text[], limit int, leases text[], owner text, lease_ms int, epoch text, lease_now int,
--   wall_now int, suspects int, floor int, root_ledger int, start_ledger int, attempts_default int, claimed_first text,
--   claimed_again text, only text, hooks text
WITH clock AS MATERIALIZED (
  SELECT store_ms(:lease_now) AS now, store_ms(:wall_now) AS wall
), level AS MATERIALIZED (
  SELECT asked.queue, priority
    FROM unnest(:queues) WITH ORDINALITY AS asked (queue, place)
   CROSS JOIN generate_series(0, 9) AS priority
   WHERE NOT EXISTS (SELECT 1 FROM queues WHERE queues.queue = asked.queue)
   ORDER BY asked.place, priority
), first_suspect AS (
  -- Asked only when the search has met a suspect, and so found at once. One that another claim is taking is not it: a claim that
  -- found nothing because of that would not look again.
  SELECT due.job_id
    FROM clock
   CROSS JOIN level
   CROSS JOIN LATERAL (
         SELECT s.job_id
           FROM jobs AS s
          CROSS JOIN LATERAL (@part(past, s)) AS past
          WHERE @part(due, s) AND past.suspect
          ORDER BY s.ready_at, s.job_id
          LIMIT 1
            FOR NO KEY UPDATE OF s SKIP LOCKED) AS due
   LIMIT 1
), found AS MATERIALIZED (
  SELECT due.*, clock.now, clock.wall, row_number() OVER () AS place
    FROM clock
   CROSS JOIN level
   CROSS JOIN LATERAL (
         SELECT @part(claimed, j)
           FROM jobs AS j
          CROSS JOIN LATERAL (@part(past, j)) AS past
          WHERE @part(due, j) AND j.ready_at >= :floor AND :only IN ('', j.job_id)
            AND (NOT past.suspect
              OR (:suspects > 0 AND j.job_id = (SELECT first_suspect.job_id FROM first_suspect)))
          ORDER BY j.ready_at, j.job_id
          LIMIT :limit
            FOR NO KEY UPDATE OF j SKIP LOCKED) AS due
   LIMIT :limit
), @part(taking, found)
