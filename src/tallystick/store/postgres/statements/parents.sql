-- parents: whose children these jobs are; a job never changes its parent.
SELECT job_id, parent_job_id FROM jobs WHERE job_id = ANY ($1::text[]) AND parent_job_id IS NOT NULL
