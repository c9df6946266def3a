-- forkable: what decides whether a job can be forked or retried.
-- takes: job_id text
SELECT kind, state, dimension, retried_as, coalesce(idempotency_key, idempotency_hash) IS NOT NULL
  FROM jobs
 WHERE job_id = :job_id
