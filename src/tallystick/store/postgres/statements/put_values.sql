-- put_values: jobs show values, each in the place of the one before. It fails unless all were written.
-- takes: list jsonb, wall int, count int
WITH given AS MATERIALIZED (
  SELECT @read(PutValue, r) FROM jsonb_array_elements(:list) AS r
), written AS (
  INSERT INTO job_values (@names(PutValue), changed_at)
  SELECT @fields(PutValue), :wall FROM given
  ON CONFLICT (job_id, name)
  DO UPDATE SET value = excluded.value, attempt = excluded.attempt, changed_at = excluded.changed_at, rev = job_values.rev + 1
  RETURNING 1
)
SELECT expect_rows('put_values', (SELECT count(*) FROM written), :count)
