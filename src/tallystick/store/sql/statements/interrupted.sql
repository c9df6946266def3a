-- interrupted: those of the listed jobs that are asked to end, held, or have ended; for a worker that runs them.
-- takes: jobs list
SELECT job_id, state = 'CANCELLING', hold, completed_at IS NOT NULL
  FROM jobs
 WHERE job_id IN :jobs AND (state = 'CANCELLING' OR hold IS NOT NULL OR completed_at IS NOT NULL)
