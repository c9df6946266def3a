-- insert_jobs_alike: jobs that differ in id and payload alone are born QUEUED, each with the fact of its submission;
-- they are not reserved and not claimed, so there is nothing to look at and none can be refused alone.
-- A due time and a deadline are measured from now by the store's clock, which also says when a job was made.
-- takes: wall_now int, ids text[], payloads text[], facts text[], hashes bytea[], like jsonb, root_ledger int
WITH clock AS MATERIALIZED (
  SELECT store_ms(:wall_now) AS wall
), request AS MATERIALIZED (
  SELECT * FROM unnest(:ids, :payloads, :facts, :hashes) AS listed (job_id, payload, fact, event_hash)
), alike AS MATERIALIZED (
  SELECT @read(NewJob, :like)
), born AS (
  INSERT INTO jobs (
    job_id, payload, @names(Alike), ready_at, deadline_at, created_at, state, ledger_form, root_ledger, head_n, head_hash,
    updated_at
  )
  SELECT request.job_id, request.payload, @fields(Alike, alike), wall + alike.ready_at - alike.created_at,
         wall + alike.deadline_at - alike.created_at, wall, 'QUEUED', 1, :root_ledger, 1, event_hash, wall
    FROM clock CROSS JOIN alike CROSS JOIN request
)
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
SELECT request.job_id, 1, 'submit', alike.created_at, 0, fact, '', event_hash FROM alike CROSS JOIN request
