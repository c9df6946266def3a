-- job_floor: the last of so many jobs before one, newest first; no row: there are fewer.
-- takes: before text, window int
SELECT job_id FROM jobs WHERE job_id < :before ORDER BY job_id DESC LIMIT 1 OFFSET :window - 1
