-- take_key: a new job has the key that another one had.
-- takes: tenant_id text, scope text, value text, holder text, content_hash text, canon_version int, job_id text, created_at int
UPDATE idempotency
   SET content_hash = :content_hash, canon_version = :canon_version, job_id = :job_id, created_at = :created_at
 WHERE tenant_id = :tenant_id AND scope = :scope AND value = :value AND job_id = :holder
