-- key_holder: the job that has (tenant, scope, value), and since when.
-- takes: tenant_id text, scope text, value text
SELECT job_id, created_at FROM idempotency WHERE tenant_id = :tenant_id AND scope = :scope AND value = :value
