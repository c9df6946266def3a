-- asked_to_end: the jobs that are being cancelled, by the index that holds only those.
SELECT job_id FROM jobs WHERE asked_at IS NOT NULL
