-- jobs_tagged: a page of the jobs with a tag, newest first. It walks the tag and looks each job up: a tag that no job has
-- costs nothing, however many jobs there are. The order of a CROSS JOIN is kept.
-- Without a tenant: of all.
-- takes: tenant_id text, states list, handler text, before text, limit int, tag text
SELECT @names(JobRow, job)
  FROM job_tags AS tagged CROSS JOIN jobs AS job
 WHERE tagged.tag = :tag AND tagged.job_id < :before AND job.job_id = tagged.job_id
   AND (:tenant_id IS NULL OR job.tenant_id = :tenant_id)
   AND (:states = '[]' OR job.state IN :states) AND (:handler IS NULL OR job.handler = :handler)
 ORDER BY tagged.job_id DESC
 LIMIT :limit
