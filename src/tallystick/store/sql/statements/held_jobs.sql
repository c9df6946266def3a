-- held_jobs: a page of jobs of a tenant that wait for a person for one reason, newest first.
-- takes: tenant_id text, hold text, before text, limit int
SELECT @names(JobRow)
  FROM jobs @indexed(jobs_held_as)
 WHERE hold IS NOT NULL AND tenant_id = :tenant_id AND hold = :hold AND job_id < :before
 ORDER BY job_id DESC
 LIMIT :limit
