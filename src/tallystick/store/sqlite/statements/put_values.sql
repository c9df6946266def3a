-- put_values: a job shows a value, in the place of the one before.
-- takes: PutValue, wall
INSERT INTO job_values (@names(PutValue), changed_at)
VALUES (@values(PutValue), :wall)
ON CONFLICT (job_id, name)
DO UPDATE SET value = excluded.value, attempt = excluded.attempt, changed_at = excluded.changed_at, rev = job_values.rev + 1
