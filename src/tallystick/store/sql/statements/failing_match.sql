-- failing_match: the last of so many jobs of a tenant with the text of an error that have what a person looks for besides it; no
-- row: there are fewer in this range.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int
SELECT j.job_id
  FROM jobs AS j @indexed(jobs_failing)
 WHERE j.error_message IS NOT NULL AND j.tenant_id = :tenant_id AND j.job_id >= :first AND j.job_id < :before
   AND @part(found, j)
 ORDER BY j.job_id DESC
 LIMIT 1 OFFSET :limit - 1
