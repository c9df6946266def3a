-- insert_events: append facts. A place in a chain is a key, so a second author of the same place fails; and it fails unless all
-- were written ($2): a step may stand at a place.
WITH fact AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($1::jsonb) AS listed (
    job_id text, n bigint, type text, at bigint, attempt bigint, payload text, prev_hash text, event_hash text)
), written AS (
  INSERT INTO events (job_id, n, type, at, attempt, payload, prev_hash, event_hash)
  SELECT job_id, n, type, at, attempt, payload, decode(prev_hash, 'hex'), decode(event_hash, 'hex')
    FROM fact
   WHERE NOT EXISTS (SELECT 1 FROM steps WHERE steps.job_id = fact.job_id AND steps.n = fact.n AND steps.misplaced IS NULL)
  RETURNING 1
)
SELECT expect_rows('insert_events', (SELECT count(*) FROM written), $2::bigint)
