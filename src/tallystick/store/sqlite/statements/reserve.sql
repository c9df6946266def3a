-- reserve: hold (tenant, scope, value) for a new job.
-- No row changed: somebody holds it already; read `reservation` and answer with that job.
INSERT INTO idempotency (tenant_id, scope, value, content_hash, canon_version, job_id, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (tenant_id, scope, value) DO NOTHING
