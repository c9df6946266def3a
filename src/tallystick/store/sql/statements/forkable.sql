-- forkable: what decides whether a job can be forked or retried, and what its fork takes over.
-- takes: job_id text
SELECT state, dimension, retried_as, @names(NewJob)
  FROM jobs
 WHERE job_id = :job_id
