-- held_key: the job that has (tenant, scope, value), if it is still this one, as a decision about the key sees it.
-- takes: tenant_id text, scope text, value text, job_id text
SELECT j.job_id, j.state, j.attempt, j.created_at, i.content_hash, j.payload, j.handler, j.ready_at, j.head_n, j.head_hash
  FROM idempotency AS i
 CROSS JOIN jobs AS j
 WHERE i.tenant_id = :tenant_id AND i.scope = :scope AND i.value = :value AND i.job_id = :job_id AND j.job_id = i.job_id
