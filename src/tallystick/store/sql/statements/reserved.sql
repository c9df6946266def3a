-- reserved: whether a job holds (tenant, scope, value).
-- takes: tenant_id text, scope text, value text
SELECT 1 FROM idempotency WHERE tenant_id = :tenant_id AND scope = :scope AND value = :value
