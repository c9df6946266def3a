-- jobs_tagged: a page of the jobs with tag ?6, newest first. It walks the tag and looks each job up: a tag that nobody has
-- costs nothing, however many jobs there are. The order of a CROSS JOIN is kept.
SELECT job.*
  FROM job_tags AS tagged CROSS JOIN job_rows AS job
 WHERE tagged.tag = ?6
   AND tagged.job_id < coalesce(?4, char(1114111))
   AND job.job_id = tagged.job_id
   AND job.tenant_id = ?1
   AND (?2 = '[]' OR job.state IN (SELECT wanted.value FROM json_each(?2) AS wanted))
   AND (?3 IS NULL OR job.handler = ?3)
 ORDER BY tagged.job_id DESC
 LIMIT ?5
