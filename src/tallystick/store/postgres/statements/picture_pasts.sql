-- picture_pasts: what lost attempts at these jobs are judged by.
SELECT j.job_id, j.created_at, j.options, (SELECT count(*) FROM futile_attempts AS f WHERE f.job_id = j.job_id)
  FROM jobs AS j
 WHERE j.job_id = ANY ($1::text[])
