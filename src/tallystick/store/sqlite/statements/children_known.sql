-- children_known: those of the listed children that were born already.
SELECT job_id FROM jobs WHERE job_id IN (SELECT wanted.value FROM json_each(?1) AS wanted)
