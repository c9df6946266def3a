-- reserve: hold (tenant, scope, value) for a new job.
-- No row changed: it is held already; read `reservations` and answer with that job.
-- takes: tenant_id, scope, value, content_hash, canon_version, job_id, created_at
INSERT INTO idempotency (@takes)
VALUES (:tenant_id, :scope, :value, :content_hash, :canon_version, :job_id, :created_at)
ON CONFLICT (tenant_id, scope, value) DO NOTHING
