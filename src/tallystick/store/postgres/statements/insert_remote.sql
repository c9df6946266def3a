-- insert_remote: remote steps of workflows begin.
-- takes: list jsonb, wall int
-- each: job_id text, dimension bigint, name text, occurrence bigint, attempt bigint, RemoteStep
INSERT INTO steps (job_id, dimension, name, occurrence, kind, attempt, created_at, updated_at, @names(RemoteStep))
SELECT job_id, dimension, name, occurrence, 'remote', attempt, :wall, :wall, @fields(RemoteStep)
  FROM (SELECT @each(r) FROM jsonb_array_elements(:list) AS r) AS listed
