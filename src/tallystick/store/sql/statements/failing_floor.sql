-- failing_floor: the last of so many jobs of a tenant with the text of an error before one, newest first; no row: there are fewer.
-- takes: tenant_id text, before text, window int
SELECT job_id
  FROM jobs @indexed(jobs_failing)
 WHERE error_message IS NOT NULL AND tenant_id = :tenant_id AND job_id < :before
 ORDER BY job_id DESC
 LIMIT 1 OFFSET :window - 1
