-- picture_children: those of these jobs that exist.
SELECT job_id FROM jobs WHERE job_id = ANY ($1::text[])
