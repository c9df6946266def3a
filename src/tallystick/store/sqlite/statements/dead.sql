-- dead: a page of jobs of a tenant that have failed and that no other job took the place of, newest first, by the index that
-- holds only those.
-- takes: tenant_id text, handler text, before text, limit int
SELECT @names(JobRow)
  FROM jobs @indexed(jobs_dead)
 WHERE tenant_id = :tenant_id AND state = 'FAILED_FINAL' AND retried_as IS NULL AND (:handler IS NULL OR handler = :handler)
   AND job_id < :before
 ORDER BY job_id DESC
 LIMIT :limit
