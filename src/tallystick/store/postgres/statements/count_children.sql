-- count_children: how many children of a group are there.
SELECT count(*) FROM jobs WHERE parent_job_id = $1 AND parent_step = $2
