-- picture_homes: what directives of remote steps say of these jobs.
-- takes: jobs list
SELECT @names(ProtocolJob) FROM jobs WHERE job_id IN :jobs
