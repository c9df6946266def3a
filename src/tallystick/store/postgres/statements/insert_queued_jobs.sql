-- insert_queued_jobs: jobs are born QUEUED, each with the fact of its submission; nobody has reserved or claimed them, so
-- there is nothing to look at and none can be refused alone.
-- A due time and a deadline are measured from now by the store's clock, which also says when a job was made. $1 that clock's time if it is not this server's, $2 to $15 columns
-- of the jobs, $16 and $17 payloads and hashes of their facts. A column that is null for all is an empty array.
WITH clock AS MATERIALIZED (
  SELECT store_ms($1::bigint) AS wall
), request AS MATERIALIZED (
  SELECT *
    FROM unnest(
           $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
           $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::bytea[]
         ) AS listed (
           job_id, tenant_id, kind, handler, version, queue, priority, delay_ms,
           left_ms, told_at, payload, options, request_type, tags, fact, event_hash)
), born AS (
  INSERT INTO jobs (
    job_id, tenant_id, kind, handler, version, queue, priority, ready_at, deadline_at, created_at, payload, options,
    request_type, tags, state, ledger_form, root_ledger, head_n, head_hash, updated_at
  )
  SELECT job_id, tenant_id, kind, handler, version, queue, priority, wall + delay_ms, wall + left_ms, wall, payload,
         options, request_type, tags, 'QUEUED', 1, $18::bigint, 1, event_hash, wall
    FROM request
   CROSS JOIN clock
)
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
SELECT job_id, 1, 'submit', told_at, 0, fact, '', event_hash
  FROM request
