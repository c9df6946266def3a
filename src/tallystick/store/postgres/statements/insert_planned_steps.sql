-- insert_planned_steps: inline steps of jobs whose rows are held, and whose leases were looked at under that lock.
-- It fails unless all were written ($2): an event may stand at a place.
WITH step AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($1::jsonb) AS listed (
    job_id text, attempt bigint, dimension bigint, name text, occurrence bigint, kind text, state text, ledger bigint,
    result text, error text, notes text, at bigint, n bigint, prev_hash text, event_hash text)
), written AS (
  INSERT INTO steps (
    job_id, attempt, dimension, name, occurrence, kind, state, ledger, result, error, notes, created_at, completed_at, n,
    prev_hash, event_hash
  )
  SELECT job_id, attempt, dimension, name, occurrence, kind, state, ledger, result, error, notes, at, at, n,
         decode(prev_hash, 'hex'), decode(event_hash, 'hex')
    FROM step
   WHERE (SELECT count(*) FROM events WHERE events.job_id = step.job_id AND events.n = step.n) = 0
  RETURNING 1
)
SELECT expect_rows('insert_planned_steps', (SELECT count(*) FROM written), $2::bigint)
