-- reservation: who holds (tenant, scope, value).
SELECT job_id, content_hash, created_at
  FROM idempotency
 WHERE tenant_id = ?1 AND scope = ?2 AND value = ?3
