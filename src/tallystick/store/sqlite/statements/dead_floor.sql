-- dead_floor: the last of so many jobs of jobs_found_dead before one, newest first; no row: there are fewer.
-- takes: tenant_id text, before text, window int
SELECT job_id
  FROM jobs @indexed(jobs_dead)
 WHERE state = 'FAILED_FINAL' AND retried_as IS NULL AND tenant_id = :tenant_id AND job_id < :before
 ORDER BY job_id DESC
 LIMIT 1 OFFSET :window - 1
