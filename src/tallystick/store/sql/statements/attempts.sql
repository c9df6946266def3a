-- attempts: every attempt at a job itself and at its effects, with its unit, oldest first; those at the job come first.
-- takes: job_id text
SELECT unit, @names(AttemptRow) FROM attempts WHERE job_id = :job_id ORDER BY unit, attempt
