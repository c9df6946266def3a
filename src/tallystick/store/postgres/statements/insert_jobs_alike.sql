-- insert_jobs_alike: jobs that differ in id and payload alone are born QUEUED, each with the fact of its submission;
-- nobody has reserved or claimed them, so there is nothing to look at and none can be refused alone.
-- A due time and a deadline are measured from now by the store's clock, which also says when a job was made. $1 that clock's time if it is not this server's, $2 to $4 ids,
-- payloads and the hashes of their facts, then what they share: columns of the jobs, and the payload of the facts.
WITH clock AS MATERIALIZED (
  SELECT store_ms($1::bigint) AS wall
), request AS MATERIALIZED (
  SELECT *
    FROM unnest($2::text[], $3::text[], $4::bytea[]) AS listed (job_id, payload, event_hash)
), born AS (
  INSERT INTO jobs (
    job_id, tenant_id, kind, handler, version, queue, priority, ready_at, deadline_at, created_at, payload, options,
    request_type, tags, state, ledger_form, root_ledger, head_n, head_hash, updated_at
  )
  SELECT job_id, $5::text, $6::text, $7::text, $8::text, $9::text, $10::bigint, wall + $11::bigint,
         wall + $12::bigint, wall, payload, $14::text, $15::text, $16::text, 'QUEUED', 1, $18::bigint, 1, event_hash, wall
    FROM request
   CROSS JOIN clock
)
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
SELECT job_id, 1, 'submit', $13::bigint, 0, $17::text, '', event_hash
  FROM request
