-- insert_events: append facts. A place in a chain is a key, so a second author of the same place fails; and it fails unless all
-- were written: a step may stand at a place.
-- takes: events jsonb, count int
WITH fact AS MATERIALIZED (
  SELECT @read(StoredEvent, r) FROM jsonb_array_elements(:events) AS r
), written AS (
  INSERT INTO events (@names(StoredEvent))
  SELECT @names(StoredEvent)
    FROM fact
   WHERE NOT EXISTS (SELECT 1 FROM steps WHERE steps.job_id = fact.job_id AND steps.n = fact.n AND steps.misplaced IS NULL)
  RETURNING 1
)
SELECT expect_rows('insert_events', (SELECT count(*) FROM written), :count)
