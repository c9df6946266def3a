-- old_jobs: the next jobs in the order of their submission, with when each was made and has ended.
-- takes: after text, limit int
SELECT job_id, created_at, completed_at FROM jobs WHERE job_id > :after ORDER BY job_id LIMIT :limit
