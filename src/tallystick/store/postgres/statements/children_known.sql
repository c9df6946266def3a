-- children_known: those of the listed children that were born already.
SELECT job_id FROM jobs WHERE job_id IN (SELECT jsonb_array_elements_text($1::jsonb))
