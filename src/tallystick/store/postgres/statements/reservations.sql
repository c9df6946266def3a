-- reservations: the job that holds the (tenant, scope, value) of each place in the list.
SELECT listed.place, i.job_id, i.content_hash, i.created_at
  FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
 CROSS JOIN LATERAL (
       SELECT job_id, content_hash, created_at
         FROM idempotency
        WHERE tenant_id = r ->> 0 AND scope = r ->> 1 AND value = r ->> 2
       OFFSET 0) AS i
