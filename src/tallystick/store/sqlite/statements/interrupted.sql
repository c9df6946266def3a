-- interrupted: those of the listed jobs that are asked to end or held; for a worker that runs them.
SELECT job_id, state = 'CANCELLING', hold
  FROM jobs
 WHERE job_id IN (SELECT wanted.value FROM json_each(?1) AS wanted) AND (state = 'CANCELLING' OR hold IS NOT NULL)
