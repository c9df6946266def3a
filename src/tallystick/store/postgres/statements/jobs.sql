-- jobs: a page of jobs, newest first; identifiers are in the order of submission, so the key is the cursor.
SELECT * FROM job_rows
 WHERE tenant_id = $1
   AND ($2::text[] = '{}' OR state = ANY ($2::text[]))
   AND ($3::text IS NULL OR handler = $3)
   AND ($4::text IS NULL OR job_id < $4)
 ORDER BY job_id DESC
 LIMIT $5::bigint
