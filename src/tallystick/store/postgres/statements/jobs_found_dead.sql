-- jobs_found_dead: jobs of a tenant that failed and that no other job took the place of, newest first, by the index that holds only those.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int
SELECT @names(JobRow, j)
  FROM jobs AS j
 WHERE j.dead IS NOT NULL AND j.tenant_id = :tenant_id AND j.dead >= :first AND j.dead < :before
   AND @part(found, j)
 ORDER BY j.dead DESC
 LIMIT :limit
