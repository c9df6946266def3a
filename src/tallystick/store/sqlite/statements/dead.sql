-- dead: a page of jobs that have failed and that no other job took the place of, newest first, by the index that holds
-- only those.
SELECT * FROM job_rows
 WHERE tenant_id = ?1 AND state = 'FAILED_FINAL' AND retried_as IS NULL
   AND (?2 IS NULL OR handler = ?2)
   AND job_id < coalesce(?3, char(1114111))
 ORDER BY job_id DESC
 LIMIT ?4
