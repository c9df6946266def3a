-- reservations: who holds the (tenant, scope, value) of each place in the list.
SELECT listed.place, i.job_id, i.content_hash, i.created_at
  FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
  JOIN idempotency AS i ON i.tenant_id = r ->> 0 AND i.scope = r ->> 1 AND i.value = r ->> 2
