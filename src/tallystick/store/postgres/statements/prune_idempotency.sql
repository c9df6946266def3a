-- prune_idempotency: the key of a job that is marked as pruned is free again. No row changed: it had none.
DELETE FROM idempotency AS i
 USING jsonb_array_elements_text($1::jsonb) AS listed (job_id)
  JOIN jobs AS j ON j.job_id = listed.job_id
 WHERE i.tenant_id = j.tenant_id AND i.job_id = j.job_id
   AND ((i.scope = 'key' AND i.value = j.idempotency_key) OR (i.scope = 'content' AND i.value = j.idempotency_hash))
