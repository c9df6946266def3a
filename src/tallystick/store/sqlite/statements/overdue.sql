-- overdue: jobs that were asked to end and have not, and whose grace is over.
SELECT job_id FROM jobs WHERE state = 'CANCELLING' AND cancel_at <= ?1 ORDER BY cancel_at LIMIT ?2
