-- jobs_narrowed: a page of jobs, newest first, without a parent or with this one, or made within a time.
-- Without a tenant: of all.
-- takes: tenant_id text, states list, handler text, before text, limit int, roots int, parent text, since int, until int
SELECT @names(JobRow)
  FROM jobs
 WHERE (:tenant_id IS NULL OR tenant_id = :tenant_id) AND (:states = '[]' OR state IN :states)
   AND (:handler IS NULL OR handler = :handler) AND job_id < :before AND (:roots = 0 OR parent_job_id IS NULL) AND (:parent IS NULL OR parent_job_id = :parent)
   AND (:since IS NULL OR created_at >= :since) AND (:until IS NULL OR created_at < :until)
 ORDER BY job_id DESC
 LIMIT :limit
