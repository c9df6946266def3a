-- reserve_key: hold (tenant, scope, value) for a new job. No row: another job holds it.
-- takes: tenant_id text, scope text, value text, content_hash text, canon_version int, job_id text, created_at int
INSERT INTO idempotency (tenant_id, scope, value, content_hash, canon_version, job_id, created_at)
VALUES (:tenant_id, :scope, :value, :content_hash, :canon_version, :job_id, :created_at)
    ON CONFLICT (tenant_id, scope, value) DO NOTHING
