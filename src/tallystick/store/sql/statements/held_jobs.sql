-- held_jobs: a page of jobs of a tenant that wait for a person, newest first, by the index that holds only those.
-- takes: tenant_id text, before text, limit int
SELECT @names(JobRow)
  FROM jobs
 WHERE hold IS NOT NULL AND tenant_id = :tenant_id AND job_id < :before
 ORDER BY job_id DESC
 LIMIT :limit
