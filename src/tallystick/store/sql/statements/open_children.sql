-- open_children: how many children of each group of a job have not ended.
-- takes: job_id text
SELECT parent_step, count(*) FROM jobs WHERE parent_job_id = :job_id AND parent_step IS NOT NULL AND completed_at IS NULL GROUP BY parent_step
