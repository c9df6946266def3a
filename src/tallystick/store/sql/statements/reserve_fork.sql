-- reserve_fork: hold a key for a fork of this job. No row changed: it is held already.
-- takes: job_id text, new_id text, key text, content_hash text, canon_version int, wall int
INSERT INTO idempotency (tenant_id, scope, value, content_hash, canon_version, job_id, created_at)
SELECT tenant_id, 'key', :key, :content_hash, :canon_version, :new_id, :wall FROM jobs WHERE job_id = :job_id
ON CONFLICT (tenant_id, scope, value) DO NOTHING
