-- jobs_found: the jobs of a range of identifiers that have what a person looks for, newest first.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int
SELECT @names(JobRow, j)
  FROM jobs AS j
 WHERE j.job_id >= :first AND j.job_id < :before AND @part(found, j)
 ORDER BY j.job_id DESC
 LIMIT :limit
