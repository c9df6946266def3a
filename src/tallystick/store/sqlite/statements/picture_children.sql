-- picture_children: those of these jobs that exist.
SELECT wanted.value FROM json_each(?1) AS wanted WHERE EXISTS (SELECT 1 FROM jobs WHERE job_id = wanted.value)
