-- attempts: every attempt at a job itself, oldest first.
-- takes: job_id text
SELECT @names(AttemptRow) FROM attempts WHERE job_id = :job_id AND unit = '' ORDER BY attempt
