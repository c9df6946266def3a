-- picture_children: those of these jobs that exist.
-- takes: jobs list
SELECT job_id FROM jobs WHERE job_id IN :jobs
