-- open_child: the first child of a group that has not ended. No row: all of them have.
-- takes: job_id text, step text
SELECT job_id FROM jobs WHERE parent_job_id = :job_id AND parent_step = :step AND completed_at IS NULL ORDER BY job_id LIMIT 1
