-- claim_jobs: take the longest-waiting due jobs, best priority first, queue by queue; each gets an attempt with a
-- lease, its start message is entered the first time and redelivered from then on, and a fact is appended.
-- Returns what a worker needs. Nobody waits: what another claim holds is skipped. Each queue and priority is one stretch
-- of the index `jobs_to_claim`, read in its order until there is enough, so the cost does not grow with the backlog.
-- Entries of jobs that were claimed before stay there until a vacuum; $11 is an instant to begin at, behind them. A
-- job that cannot be claimed (with an attempt that is live, lost or committed, or a suspect too many) does not stop the others.
-- $1 queues, $2 handlers with versions, $3 how many, $4 a lease for each, $5 owner, $6 how long a lease lasts,
-- $7 the clock the leases are on, $8 and $9 lease and wall time if they are not this server's, $10 whether to take a suspect: a
-- job over which, since it last made progress, two workers were lost, or one and its next attempt is its last; and then
-- only the first of them. $12 and $13 the digits of root and start of a job that is claimed for the first time.
WITH clock AS MATERIALIZED (
  SELECT store_ms($8::bigint) AS now, store_ms($9::bigint) AS wall
), level AS MATERIALIZED (
  SELECT asked.queue, priority
    FROM unnest($1::text[]) WITH ORDINALITY AS asked (queue, place)
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
          WHERE s.queue = level.queue AND s.priority = level.priority AND s.ready_at <= clock.wall
            AND s.ready_at IS NOT NULL AND s.hold IS NULL AND s.state IN ('QUEUED', 'IN_PROGRESS', 'CANCELLING')
            AND s.handler || ' ' || s.version = ANY ($2::text[]) AND s.attempt > 0
            AND (SELECT count(*)
                   FROM attempts AS live
                  WHERE live.job_id = s.job_id AND live.unit = '' AND live.status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED')) = 0
            AND (SELECT count(*) FILTER (WHERE f.reason = 'EXPIRED') > 1
                     OR (count(*) FILTER (WHERE f.reason = 'EXPIRED') > 0
                         AND count(*) + 1 >= coalesce(substring(s.options FROM '"attempts_max":(\d{1,9})')::bigint, 3))
                   FROM futile_attempts AS f
                  WHERE f.job_id = s.job_id)
          ORDER BY s.ready_at, s.job_id
          LIMIT 1
            FOR NO KEY UPDATE SKIP LOCKED) AS due
   LIMIT 1
), found AS MATERIALIZED (
  SELECT due.*, clock.now, clock.wall, row_number() OVER () AS place
    FROM clock
   CROSS JOIN level
   CROSS JOIN LATERAL (
         SELECT j.ctid AS job_at, j.job_id, j.attempt, j.handler, j.version, j.payload, j.options, j.dimension,
                j.deadline_at, j.created_at, j.head_n, j.head_hash, j.start_acked_at, j.parent_job_id, j.parent_step,
                j.state = 'CANCELLING' AS cancelling, j.semaphore, j.ready_at AS was_ready_at,
                lost.suspect
           FROM jobs AS j
          CROSS JOIN LATERAL (
                SELECT j.attempt > 0
                   AND (SELECT count(*) FILTER (WHERE f.reason = 'EXPIRED') > 1
                            OR (count(*) FILTER (WHERE f.reason = 'EXPIRED') > 0
                                AND count(*) + 1 >= coalesce(substring(j.options FROM '"attempts_max":(\d{1,9})')::bigint, 3))
                          FROM futile_attempts AS f
                         WHERE f.job_id = j.job_id) AS suspect) AS lost
          WHERE j.queue = level.queue AND j.priority = level.priority AND j.ready_at <= clock.wall
            AND j.ready_at >= $11::bigint AND j.ready_at IS NOT NULL AND j.hold IS NULL AND j.state IN ('QUEUED', 'IN_PROGRESS', 'CANCELLING')
            AND j.handler || ' ' || j.version = ANY ($2::text[])
            AND (SELECT count(*)
                   FROM attempts AS live
                  WHERE live.job_id = j.job_id AND live.unit = '' AND live.status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED')) = 0
            AND (NOT lost.suspect
              OR ($10::bigint > 0 AND j.job_id = (SELECT first_suspect.job_id FROM first_suspect)))
          ORDER BY j.ready_at, j.job_id
          LIMIT $3::bigint
            FOR NO KEY UPDATE OF j SKIP LOCKED) AS due
   LIMIT $3::bigint
), numbered AS MATERIALIZED (
  SELECT found.*,
         CASE WHEN attempt > 0 THEN '{"job":"IN_PROGRESS","attempt":"LEASED>IN_PROGRESS"}'
              ELSE '{"job":"QUEUED>DISPATCHING>IN_PROGRESS","attempt":"LEASED>IN_PROGRESS"}' END AS fact
    FROM found
), linked AS MATERIALIZED (
  SELECT numbered.*, ($4::text[])[place] AS lease_id,
         fact_hash(head_hash, job_id, head_n + 1, 'claim', wall, attempt + 1, fact) AS event_hash
    FROM numbered
), taken AS (
  UPDATE jobs
     SET state = CASE jobs.state WHEN 'CANCELLING' THEN 'CANCELLING' ELSE 'IN_PROGRESS' END,
         attempt = jobs.attempt + 1, attempts_total = attempts_total + 1, ready_at = NULL,
         start_redeliveries =
           start_redeliveries + CASE WHEN start_ledger > 0 AND jobs.start_acked_at IS NULL THEN 1 ELSE 0 END,
         root_ledger = CASE WHEN start_ledger = 0 AND jobs.start_acked_at IS NULL THEN $12::bigint ELSE root_ledger END,
         start_ledger = CASE WHEN start_ledger = 0 AND jobs.start_acked_at IS NULL THEN $13::bigint ELSE start_ledger END,
         head_n = linked.head_n + 1, head_hash = linked.event_hash, updated_at = linked.wall, rev = rev + 1
    FROM linked
   WHERE jobs.ctid = linked.job_at
  RETURNING linked.*
), leased AS (
  INSERT INTO attempts (
    job_id, attempt, status, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at
  )
  SELECT job_id, attempt + 1, 'IN_PROGRESS', lease_id, $5, $7, now + $6::bigint, wall FROM taken
), written AS (
  INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
  SELECT job_id, head_n + 1, 'claim', wall, attempt + 1, fact, head_hash, event_hash FROM taken
)
SELECT job_id, attempt + 1, lease_id, handler, version, payload, options, dimension, deadline_at - wall, created_at, head_n + 1,
       event_hash, suspect, start_acked_at IS NULL, parent_job_id, parent_step,
       cancelling, semaphore, was_ready_at
  FROM taken
 ORDER BY place
