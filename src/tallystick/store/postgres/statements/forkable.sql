-- forkable: what decides whether a job can be forked or retried.
SELECT kind, state, dimension, retried_as FROM jobs WHERE job_id = $1
