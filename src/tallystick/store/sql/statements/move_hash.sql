-- move_hash: the job that has a key has another content now.
-- takes: tenant_id text, scope text, value text, job_id text, content_hash text, canon_version int
UPDATE idempotency
   SET content_hash = :content_hash, canon_version = :canon_version
 WHERE tenant_id = :tenant_id AND scope = :scope AND value = :value AND job_id = :job_id
