-- whole_job: what was submitted, as the row of the job has it, and all else of the row that its book does not have.
-- takes: job_id text
SELECT @names(NewJob), @names(JobRest) FROM jobs WHERE job_id = :job_id
