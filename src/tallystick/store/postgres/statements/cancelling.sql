-- cancelling: jobs that are asked to end and have not.
SELECT job_id, cancel_at FROM jobs WHERE state = 'CANCELLING' ORDER BY cancel_at LIMIT $1::bigint
