-- count_found_dead: how many jobs of jobs_found_dead there are, counted up to a limit.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int
SELECT count(*)
  FROM (SELECT 1
          FROM jobs AS j
         WHERE j.dead IS NOT NULL AND j.tenant_id = :tenant_id AND j.dead >= :first AND j.dead < :before
           AND @part(found, j)
         LIMIT :limit) AS counted
