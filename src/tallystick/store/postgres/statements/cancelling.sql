-- cancelling: jobs that are asked to end and have not.
SELECT job_id, asked_at FROM jobs WHERE asked_at IS NOT NULL ORDER BY asked_at LIMIT $1::bigint
