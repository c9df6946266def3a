-- owner: the tenant of a job; the lock that every writer needs is held. No row: there is no such job.
-- takes: job_id text
SELECT tenant_id FROM jobs WHERE job_id = :job_id
