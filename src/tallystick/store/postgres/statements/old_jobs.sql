-- old_jobs: the next jobs in the order of their submission, with when each was made and has ended.
SELECT job_id, created_at, completed_at FROM jobs WHERE job_id > $1 ORDER BY job_id LIMIT $2::bigint
