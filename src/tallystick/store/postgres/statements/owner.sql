-- owner: the tenant of a job, whose row is not removed before this transaction ends. No row: there is no such job.
-- Lock order: none. A key share waits for a removal alone, and no verb waits for a key share.
SELECT tenant_id FROM jobs WHERE job_id = $1 FOR KEY SHARE
