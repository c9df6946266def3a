-- dead: a page of jobs that have failed and that no other job took the place of, newest first, by the index that holds
-- only those.
SELECT * FROM job_rows
 WHERE tenant_id = $1 AND state = 'FAILED_FINAL' AND retried_as IS NULL
   AND ($2::text IS NULL OR handler = $2)
   AND ($3::text IS NULL OR job_id < $3)
 ORDER BY job_id DESC
 LIMIT $4::bigint
