-- hold_ended: the listed jobs that have ended; the writer holds the whole file.
SELECT job_id FROM jobs WHERE job_id IN (SELECT value FROM json_each(?1)) AND completed_at IS NOT NULL
