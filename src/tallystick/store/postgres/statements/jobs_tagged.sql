-- jobs_tagged: a page of the jobs with a tag, newest first. It walks the tag and looks each job up: a tag that no job has
-- costs nothing, however many jobs there are. The OFFSET keeps the planner from walking the jobs instead, and a range of
-- one tag, in the order of the key, from walking the tags of all of them.
-- Without a tenant: of all.
-- takes: tenant_id text, states list, handler text, before text, limit int, tag text
SELECT @names(JobRow, job)
  FROM job_tags AS tagged
 CROSS JOIN LATERAL (SELECT * FROM jobs WHERE jobs.job_id = tagged.job_id OFFSET 0) AS job
 WHERE tagged.tag BETWEEN :tag AND :tag AND tagged.job_id < :before
   AND (:tenant_id IS NULL OR job.tenant_id = :tenant_id)
   AND (:states = '[]' OR job.state IN :states) AND (:handler IS NULL OR job.handler = :handler)
 ORDER BY tagged.tag DESC, tagged.job_id DESC
 LIMIT :limit
