-- reservations: the job that holds (tenant, scope, value).
-- takes: tenant_id, scope, value
SELECT job_id, content_hash, created_at
  FROM idempotency
 WHERE tenant_id = :tenant_id AND scope = :scope AND value = :value
