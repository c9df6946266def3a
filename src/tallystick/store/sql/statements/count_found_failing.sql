-- count_found_failing: how many jobs of jobs_found_failing there are, counted up to a limit.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int
SELECT count(*)
  FROM (SELECT 1
          FROM jobs AS j @indexed(jobs_failing)
         WHERE j.error_message IS NOT NULL AND j.tenant_id = :tenant_id AND j.job_id >= :first AND j.job_id < :before
           AND @part(found, j)
         LIMIT :limit) AS counted
