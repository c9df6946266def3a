-- dead: a page of jobs that have failed and that no other job took the place of, newest first, by the index that holds
-- only those.
SELECT r.*
  FROM jobs AS j
  JOIN job_rows AS r ON r.job_id = j.job_id
 WHERE j.tenant_id = $1 AND j.dead IS NOT NULL
   AND ($2::text IS NULL OR j.handler = $2)
   AND ($3::text IS NULL OR j.dead < $3)
 ORDER BY j.dead DESC
 LIMIT $4::bigint
