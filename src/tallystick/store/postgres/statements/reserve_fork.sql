-- reserve_fork: hold a key for a fork of this job. No row changed: somebody holds it already.
INSERT INTO idempotency (tenant_id, scope, value, content_hash, canon_version, job_id, created_at)
SELECT tenant_id, 'key', $3, $4, $5::bigint, $2, $6::bigint
  FROM jobs
 WHERE job_id = $1
ON CONFLICT (tenant_id, scope, value) DO NOTHING
