-- jobs_found_dead: jobs of a tenant that failed and that no other job took the place of, newest first, by the index that holds only those.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int
SELECT @names(JobRow, j)
  FROM jobs AS j @indexed(jobs_dead)
 WHERE j.state = 'FAILED_FINAL' AND j.retried_as IS NULL AND j.tenant_id = :tenant_id AND j.job_id >= :first AND j.job_id < :before
   AND @part(found, j)
 ORDER BY j.job_id DESC
 LIMIT :limit
