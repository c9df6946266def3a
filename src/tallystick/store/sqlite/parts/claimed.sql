-- claimed: what a claim reads of a job.
job_id, attempt, handler, version, payload, options, dimension, deadline_at, created_at, head_n, head_hash, start_acked_at,
parent_job_id, parent_step, state = 'CANCELLING', semaphore, idempotency_key, tags,
CASE WHEN attempt > 0 THEN (SELECT suspect FROM (@part(past, @job))) ELSE 0 END
