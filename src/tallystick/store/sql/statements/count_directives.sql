-- count_directives: how many directives a job has made.
-- takes: job_id text
SELECT count(*) FROM outbox WHERE job_id = :job_id
