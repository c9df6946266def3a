-- picture_parents: those of the jobs $1 that have children which have not ended and are not detached.
SELECT wanted.job_id
  FROM unnest($1::text[]) AS wanted (job_id)
 WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.open_parent = wanted.job_id)
