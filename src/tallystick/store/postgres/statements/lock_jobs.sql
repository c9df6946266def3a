-- lock_jobs: hold the rows of jobs in the order of their identifiers, so that flushes of several processes queue up.
SELECT job_id FROM jobs WHERE job_id = ANY ($1::text[]) ORDER BY job_id FOR NO KEY UPDATE
