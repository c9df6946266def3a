-- dead_floor: the last of so many jobs of jobs_found_dead before one, newest first; no row: there are fewer.
-- takes: tenant_id text, before text, window int
SELECT job_id
  FROM jobs
 WHERE dead IS NOT NULL AND tenant_id = :tenant_id AND dead < :before
 ORDER BY dead DESC
 LIMIT 1 OFFSET :window - 1
