-- reserve: hold (tenant, scope, value) for new jobs, in the order of keys; the second transaction waits for the first to end
-- and then writes nothing. `reservations` tells which job holds what.
INSERT INTO idempotency (tenant_id, scope, value, content_hash, canon_version, job_id, created_at)
SELECT r ->> 0, r ->> 1, r ->> 2, r ->> 3, (r ->> 4)::bigint, r ->> 5, (r ->> 6)::bigint
  FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS listed (r, place)
 ORDER BY r ->> 0, r ->> 1, r ->> 2, place
ON CONFLICT (tenant_id, scope, value) DO NOTHING
