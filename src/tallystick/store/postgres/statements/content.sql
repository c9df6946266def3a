-- content: what a submission is known by, and the hash that was made of it. No row: it is known by nothing.
SELECT tenant_id, request_type, input_ref, output_ref, payload, schema_version, version, idempotency_hash, canon_version
  FROM jobs
 WHERE job_id = $1 AND idempotency_hash IS NOT NULL AND canon_version IS NOT NULL
