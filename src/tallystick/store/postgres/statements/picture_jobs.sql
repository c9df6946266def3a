-- picture_jobs: the facts of jobs ($1), and of the parents of those that may end ($2), that decisions read; with the newest
-- arrival in each inbox. In a statement of its own, after the lock: one that waited for it has seen older messages.
SELECT @part(job_facts, j)
  FROM jobs AS j
  @part(newest, j)
 WHERE j.job_id = ANY (ARRAY(SELECT unnest($1::text[])
                             UNION
                             SELECT parent_job_id FROM jobs WHERE job_id = ANY ($2::text[]) AND parent_step IS NOT NULL))
