-- prune_idempotency: the key of a job that is marked as pruned is free again. No row changed: it had none.
-- takes: jobs list
DELETE FROM idempotency
 WHERE (tenant_id, scope, value) IN (
       SELECT j.tenant_id, 'key', j.idempotency_key FROM jobs AS j WHERE j.job_id IN :jobs
       UNION ALL
       SELECT j.tenant_id, 'content', j.idempotency_hash FROM jobs AS j WHERE j.job_id IN :jobs)
   AND job_id IN :jobs
