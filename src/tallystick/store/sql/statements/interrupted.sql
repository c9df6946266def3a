-- interrupted: those of the listed jobs that are asked to end or held; for a worker that runs them.
-- takes: jobs list
SELECT job_id, state = 'CANCELLING', hold FROM jobs WHERE job_id IN :jobs AND (state = 'CANCELLING' OR hold IS NOT NULL)
