-- dead_of_all: the same of all tenants; as many rows of the index are read as there are such jobs.
-- takes: handler text, before text, limit int
SELECT @names(JobRow)
  FROM jobs @indexed(jobs_dead)
 WHERE state = 'FAILED_FINAL' AND retried_as IS NULL AND (:handler IS NULL OR handler = :handler) AND job_id < :before
 ORDER BY job_id DESC
 LIMIT :limit
