-- jobs: a page of jobs, newest first; identifiers are in the order of submission, so the key is the cursor.
-- Without a tenant: of all.
-- takes: tenant_id text, states list, handler text, before text, limit int
SELECT @names(JobRow)
  FROM jobs
 WHERE (:tenant_id IS NULL OR tenant_id = :tenant_id) AND (:states = '[]' OR state IN :states)
   AND (:handler IS NULL OR handler = :handler) AND job_id < :before
 ORDER BY job_id DESC
 LIMIT :limit
