-- jobs_found_held: jobs of a tenant that wait for a person, newest first, by the index that holds only those.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int
SELECT @names(JobRow, j)
  FROM jobs AS j @indexed(jobs_held_of)
 WHERE j.hold IS NOT NULL AND j.tenant_id = :tenant_id AND j.job_id >= :first AND j.job_id < :before
   AND @part(found, j)
 ORDER BY j.job_id DESC
 LIMIT :limit
