-- parent: where a job's end is counted, if it is a child of a group.
SELECT parent_job_id, parent_step FROM jobs WHERE job_id = ?1 AND parent_job_id IS NOT NULL
