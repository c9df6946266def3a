-- What waits for a person is listed by tenant and by what holds it, and errors are searched among jobs that have one.
CREATE INDEX jobs_held_of ON jobs (tenant_id, job_id) WHERE hold IS NOT NULL;
CREATE INDEX jobs_held_as ON jobs (hold, tenant_id, job_id) WHERE hold IS NOT NULL;
CREATE INDEX jobs_failing ON jobs (tenant_id, job_id) WHERE error_message IS NOT NULL;
