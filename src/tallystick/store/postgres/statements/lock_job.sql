-- lock_job: hold a job's row, so that between a look and a write no other transaction delivers, wakes or ends it.
SELECT 1 FROM jobs WHERE job_id = $1 FOR NO KEY UPDATE
