-- forkable: what decides whether a job can be forked or retried.
SELECT kind, state, dimension, retried_as, coalesce(idempotency_key, idempotency_hash) IS NOT NULL FROM jobs WHERE job_id = ?1
