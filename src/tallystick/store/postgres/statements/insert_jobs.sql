-- insert_jobs: jobs are born, QUEUED or, when their submitter also claims them, IN_PROGRESS with an attempt and their
-- start message entered; their first facts with them.
-- Returns the places in the list that became jobs; the others met an earlier reservation. Runs after `reserve`. A due
-- time and a deadline are measured from now by the store's clock, which also says when a job was made.
-- $1 the list, $2 the clock the leases are on, $3 and $4 lease and wall time if they are not this server's.
WITH request AS (
  SELECT place, r, r ->> 0 AS job_id, r ->> 22 AS state, (r ->> 23)::bigint AS attempt, (r ->> 24)::bigint AS head_n,
         decode(r ->> 25, 'hex') AS head_hash, r -> 26 AS facts, r -> 27 AS reservation, r -> 28 AS lease,
         store_ms($3::bigint) AS now, store_ms($4::bigint) AS wall
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
), fresh AS MATERIALIZED (
  SELECT *
    FROM request
   WHERE reservation = 'null'
      OR job_id = (SELECT i.job_id
                     FROM idempotency AS i
                    WHERE i.tenant_id = reservation ->> 0 AND i.scope = reservation ->> 1 AND i.value = reservation ->> 2)
), born AS (
  INSERT INTO jobs (
    job_id, tenant_id, kind, handler, version, queue, priority, ready_at, deadline_at, created_at, payload, options,
    request_type, input_ref, output_ref, schema_version, idempotency_key, idempotency_hash, canon_version,
    correlation_id, traceparent, tags,
    state, attempt, attempts_total, ledger_form, root_ledger, start_ledger, head_n, head_hash, updated_at
  )
  SELECT job_id, r ->> 1, r ->> 2, r ->> 3, r ->> 4, r ->> 5, (r ->> 6)::bigint, wall + (r ->> 7)::bigint,
         wall + (r ->> 8)::bigint, wall, r ->> 10, r ->> 11, r ->> 12, r ->> 13, r ->> 14, r ->> 15, r ->> 16,
         r ->> 17, (r ->> 18)::bigint, r ->> 19, r ->> 20, r ->> 21,
         state, attempt, attempt, 1, (r ->> 29)::bigint, (r ->> 30)::bigint, head_n, head_hash, wall
    FROM fresh
   ORDER BY place
), leased AS (
  INSERT INTO attempts (
    job_id, attempt, status, lease_id, lease_owner, lease_epoch, lease_expires_at, started_at
  )
  SELECT job_id, attempt, 'IN_PROGRESS', lease ->> 0, lease ->> 1, $2, now + (lease ->> 2)::bigint, wall
    FROM fresh
   WHERE lease <> 'null'
   ORDER BY place
), written AS (
  INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
  SELECT job_id, (fact ->> 0)::bigint, fact ->> 1, (fact ->> 2)::bigint, (fact ->> 3)::bigint, fact ->> 4,
         decode(fact ->> 5, 'hex'), decode(fact ->> 6, 'hex')
    FROM fresh
   CROSS JOIN LATERAL jsonb_array_elements(facts) AS fact
   ORDER BY place
)
SELECT place FROM fresh
