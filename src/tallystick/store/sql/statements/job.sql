-- job: one job, as people look at it.
-- takes: job_id text
SELECT @names(JobRow) FROM jobs WHERE job_id = :job_id
