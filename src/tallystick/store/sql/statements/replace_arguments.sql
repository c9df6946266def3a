-- replace_arguments: give other arguments to a job that no worker has claimed.
-- takes: job_id text, was_hash text, payload text, content_hash text, canon_version int, ready_at int, head_n int, head_hash bytes,
--   at int
UPDATE jobs
   SET payload = :payload, idempotency_hash = :content_hash, canon_version = :canon_version, ready_at = :ready_at,
       head_n = :head_n, head_hash = :head_hash, updated_at = :at, rev = rev + 1
 WHERE job_id = :job_id AND idempotency_hash = :was_hash AND attempt = 0 AND state = 'QUEUED'
