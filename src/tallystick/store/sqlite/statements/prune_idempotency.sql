-- prune_idempotency: the key of a job that is marked as pruned is free again. No row changed: it had none.
DELETE FROM idempotency
 WHERE (tenant_id, scope, value) IN (
       SELECT j.tenant_id, 'key', j.idempotency_key FROM jobs AS j WHERE j.job_id IN (SELECT value FROM json_each(?1))
       UNION ALL
       SELECT j.tenant_id, 'content', j.idempotency_hash FROM jobs AS j WHERE j.job_id IN (SELECT value FROM json_each(?1)))
   AND job_id IN (SELECT value FROM json_each(?1))
