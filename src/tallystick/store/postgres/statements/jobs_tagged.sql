-- jobs_tagged: a page of the jobs with tag $6, newest first. It walks the tag and looks each job up: a tag that nobody has
-- costs nothing, however many jobs there are. The OFFSET keeps the planner from walking the jobs instead, and a range of
-- one tag, in the order of the key, from walking the tags of all of them.
SELECT job.*
  FROM job_tags AS tagged
 CROSS JOIN LATERAL (SELECT * FROM job_rows WHERE job_rows.job_id = tagged.job_id OFFSET 0) AS job
 WHERE tagged.tag BETWEEN $6 AND $6
   AND ($4::text IS NULL OR tagged.job_id < $4)
   AND job.tenant_id = $1
   AND ($2::text[] = '{}' OR job.state = ANY ($2::text[]))
   AND ($3::text IS NULL OR job.handler = $3)
 ORDER BY tagged.tag DESC, tagged.job_id DESC
 LIMIT $5::bigint
