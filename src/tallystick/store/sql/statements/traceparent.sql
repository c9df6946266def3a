-- traceparent: the span that a job was submitted in, if it was in one.
-- takes: job_id text
SELECT traceparent FROM jobs WHERE job_id = :job_id
