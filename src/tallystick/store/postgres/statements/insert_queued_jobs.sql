-- insert_queued_jobs: jobs are born QUEUED, each with the fact of its submission; they are not reserved and not claimed, so
-- there is nothing to look at and none can be refused alone. A column that is null for all is an empty array.
-- A due time and a deadline are measured from now by the store's clock, which also says when a job was made.
-- takes: wall_now int, NewJob[], facts text[], hashes bytea[], root_ledger int
WITH clock AS MATERIALIZED (
  SELECT store_ms(:wall_now) AS wall
), request AS MATERIALIZED (
  SELECT * FROM unnest(@values(NewJob), :facts, :hashes) AS listed (@fields(NewJob), fact, event_hash)
), born AS (
  INSERT INTO jobs (
    job_id, payload, @names(Alike), ready_at, deadline_at, created_at, state, ledger_form, root_ledger, head_n, head_hash,
    updated_at
  )
  SELECT job_id, payload, @fields(Alike), wall + ready_at - created_at, wall + deadline_at - created_at, wall, 'QUEUED', 1,
         :root_ledger, 1, event_hash, wall
    FROM request
   CROSS JOIN clock
)
INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
SELECT job_id, 1, 'submit', created_at, 0, fact, '', event_hash FROM request
