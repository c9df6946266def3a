-- reservations_page: a page of reservations behind one, each with what the job that it names is known by; nulls: there is no such job.
-- takes: tenant_id text, scope text, value text, limit int
SELECT @names(Kept, i), j.tenant_id, j.idempotency_key, j.idempotency_hash
  FROM (SELECT * FROM idempotency WHERE (tenant_id, scope, value) > (:tenant_id, :scope, :value) ORDER BY tenant_id, scope, value LIMIT :limit) AS i
  LEFT JOIN jobs AS j ON j.job_id = i.job_id
 ORDER BY i.tenant_id, i.scope, i.value
