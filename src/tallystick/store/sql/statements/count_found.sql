-- count_found: how many jobs of a range of identifiers have what a person looks for, counted up to a limit.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int
SELECT count(*)
  FROM (SELECT 1
          FROM jobs AS j
         WHERE j.job_id >= :first AND j.job_id < :before AND @part(found, j)
         LIMIT :limit) AS counted
