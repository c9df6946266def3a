-- held_floor: the last of so many jobs of a tenant that wait for a person before one, newest first; no row: there are fewer.
-- takes: tenant_id text, before text, window int
SELECT job_id
  FROM jobs @indexed(jobs_held_of)
 WHERE hold IS NOT NULL AND tenant_id = :tenant_id AND job_id < :before
 ORDER BY job_id DESC
 LIMIT 1 OFFSET :window - 1
