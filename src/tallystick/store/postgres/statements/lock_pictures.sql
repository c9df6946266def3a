-- lock_pictures: hold the rows of jobs ($1), and of the parents of those that may end ($2), in the order of their
-- identifiers, so that flushes of several processes queue up. A parent never changes.
SELECT job_id
  FROM jobs
 WHERE job_id = ANY (ARRAY(SELECT unnest($1::text[])
                           UNION
                           SELECT parent_job_id FROM jobs WHERE job_id = ANY ($2::text[]) AND parent_step IS NOT NULL))
 ORDER BY job_id
   FOR NO KEY UPDATE
