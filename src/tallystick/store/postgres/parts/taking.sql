-- taking: how jobs that were found are claimed: with a lease and a fact, and what a worker needs of them.
numbered AS MATERIALIZED (
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
