-- claim_jobs: take the longest-waiting due jobs, best priority first, queue by queue; each gets an attempt with a
-- lease, its start message is entered the first time and redelivered from then on, and a fact is appended.
-- Returns what a worker needs. Nobody waits: what another claim holds is skipped. Each queue and priority is one stretch
-- of the index `jobs_to_claim`, read in its order until there is enough, so the cost does not grow with the backlog.
-- Entries of jobs that were claimed before stay there until a vacuum; `floor` is an instant to begin at, behind them. A
-- job that cannot be claimed (with a live attempt, or a suspect too many) does not stop the others.
-- `suspects` says whether to take a suspect, and then only the first of them; `root_ledger` and `start_ledger` are the digits of a job
-- that is claimed for the first time; `only` is the one job that may be taken, if it is not empty.
-- takes: queues text[], handlers text[], limit int, leases text[], owner text, lease_ms int, epoch text, lease_now int,
--   wall_now int, suspects int, floor int, root_ledger int, start_ledger int, attempts_default int, claimed_first text,
--   claimed_again text, only text, hooks text
WITH clock AS MATERIALIZED (
  SELECT store_ms(:lease_now) AS now, store_ms(:wall_now) AS wall
), level AS MATERIALIZED (
  SELECT asked.queue, priority
    FROM unnest(:queues) WITH ORDINALITY AS asked (queue, place)
   CROSS JOIN generate_series(0, 9) AS priority
   ORDER BY asked.place, priority
), first_suspect AS (
  -- Asked only when the search has met a suspect, and so found at once. One that another claim is taking is not it: whoever
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
         SELECT j.ctid AS job_at, j.job_id, j.attempt, j.handler, j.version, j.payload, j.options, j.dimension,
                j.deadline_at, j.created_at, j.head_n, j.head_hash, j.start_acked_at, j.parent_job_id, j.parent_step,
                j.state = 'CANCELLING' AS cancelling, j.semaphore, j.ready_at AS was_ready_at, j.idempotency_key, j.tags,
                CASE WHEN j.start_acked_at IS NOT NULL
                     THEN ARRAY[j.root_ledger, j.start_ledger, j.start_acked_at, j.cancel_at, j.rev + 1, j.ledger_form] END AS woken,
                past.charged, past.suspect
           FROM jobs AS j
          CROSS JOIN LATERAL (@part(past, j)) AS past
          WHERE @part(due, j) AND j.ready_at >= :floor AND :only IN ('', j.job_id)
            AND (NOT past.suspect
              OR (:suspects > 0 AND j.job_id = (SELECT first_suspect.job_id FROM first_suspect)))
          ORDER BY j.ready_at, j.job_id
          LIMIT :limit
            FOR NO KEY UPDATE OF j SKIP LOCKED) AS due
   LIMIT :limit
), numbered AS MATERIALIZED (
  SELECT found.*, (:leases)[place] AS lease_id,
         left(CASE WHEN attempt > 0 THEN :claimed_again ELSE :claimed_first END, -1)
           || ',"lease":"' || (:leases)[place] || '","by":"' || :owner || '"}' AS fact
    FROM found
), linked AS MATERIALIZED (
  SELECT numbered.*,
         fact_hash(head_hash, job_id, head_n + 1, 'claim', wall, attempt + 1, fact) AS event_hash
    FROM numbered
), taken AS (
  UPDATE jobs
     SET state = CASE jobs.state WHEN 'CANCELLING' THEN 'CANCELLING' ELSE 'IN_PROGRESS' END,
         attempt = jobs.attempt + 1, attempts_total = attempts_total + 1, ready_at = NULL,
         start_redeliveries =
           start_redeliveries + CASE WHEN start_ledger > 0 AND jobs.start_acked_at IS NULL THEN 1 ELSE 0 END,
         root_ledger = CASE WHEN start_ledger = 0 AND jobs.start_acked_at IS NULL THEN :root_ledger ELSE root_ledger END,
         start_ledger = CASE WHEN start_ledger = 0 AND jobs.start_acked_at IS NULL THEN :start_ledger ELSE start_ledger END,
         head_n = linked.head_n + 1, head_hash = linked.event_hash, updated_at = linked.wall, rev = rev + 1,
         hooks = coalesce(:hooks, hooks)
    FROM linked
   WHERE jobs.ctid = linked.job_at
  RETURNING linked.*
), leased AS (
  INSERT INTO attempts (
    job_id, attempt, status, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at
  )
  SELECT job_id, attempt + 1, 'IN_PROGRESS', lease_id, :owner, :epoch, now + :lease_ms, wall FROM taken WHERE woken IS NULL
), written AS (
  INSERT INTO events (@names(StoredEvent))
  SELECT job_id, head_n + 1, 'claim', wall, attempt + 1, fact, head_hash, event_hash FROM taken
)
SELECT job_id, attempt + 1, lease_id, handler, version, payload, options, dimension, deadline_at - wall, created_at, head_n + 1,
       event_hash, charged, suspect, woken, parent_job_id, parent_step,
       cancelling, semaphore, was_ready_at, idempotency_key, tags, wall
  FROM taken
 ORDER BY place
