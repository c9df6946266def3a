-- content: what a submission is known by, and the hash that was made of it. No row: it is known by nothing.
-- takes: job_id text
SELECT @names(Content)
  FROM jobs
 WHERE job_id = :job_id AND idempotency_hash IS NOT NULL AND canon_version IS NOT NULL
