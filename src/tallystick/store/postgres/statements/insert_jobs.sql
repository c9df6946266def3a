-- insert_jobs: jobs are born, QUEUED or, when their submitter also claims them, IN_PROGRESS with an attempt and their
-- start message entered; their first facts with them.
-- Returns the places in the list that became jobs; the others met an earlier reservation, or were to begin at once in a queue
-- whose limits decide about that. Runs after `reserve`. A due
-- time and a deadline are measured from now by the store's clock, which also says when a job was made.
-- takes: list jsonb, epoch text, lease_now int, wall_now int
-- each: NewJob, state text, attempt bigint, root_ledger bigint, start_ledger bigint, head_n bigint, head_hash bytea, facts jsonb,
--   reservation jsonb, lease jsonb
WITH request AS (
  SELECT place, @each(r), store_ms(:lease_now) AS now, store_ms(:wall_now) AS wall
    FROM jsonb_array_elements(:list) WITH ORDINALITY AS listed (r, place)
), fresh AS MATERIALIZED (
  SELECT *
    FROM request
   WHERE (lease = 'null' OR NOT EXISTS (SELECT 1 FROM queues WHERE queues.queue = request.queue))
     AND (reservation = 'null'
      OR job_id = (SELECT i.job_id
                     FROM idempotency AS i
                    WHERE i.tenant_id = reservation ->> 0 AND i.scope = reservation ->> 1 AND i.value = reservation ->> 2))
), born AS (
  INSERT INTO jobs (
    job_id, payload, @names(Alike), ready_at, deadline_at, created_at, state, attempt, attempts_total, ledger_form,
    root_ledger, start_ledger, head_n, head_hash, updated_at
  )
  SELECT job_id, payload, @fields(Alike), CASE WHEN lease = 'null' THEN wall + ready_at - created_at END,
         wall + deadline_at - created_at, wall, state, attempt, attempt, 1, root_ledger, start_ledger, head_n, head_hash, wall
    FROM fresh
   ORDER BY place
), leased AS (
  INSERT INTO attempts (
    job_id, attempt, status, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at
  )
  SELECT job_id, attempt, 'IN_PROGRESS', lease ->> 0, lease ->> 1, :epoch, now + (lease ->> 2)::bigint, wall
    FROM fresh
   WHERE lease <> 'null'
   ORDER BY place
), written AS (
  INSERT INTO events (@names(StoredEvent))
  SELECT @read(StoredEvent, fact) FROM fresh CROSS JOIN LATERAL jsonb_array_elements(facts) AS fact ORDER BY place
)
SELECT place FROM fresh
