-- count_found_dead: how many jobs of jobs_found_dead there are, counted up to a limit.
-- takes: tenant_id text, states list, handler text, queue text, key text, parent text, held int, dead int, since int,
--   until int, error text, first text, before text, limit int
SELECT count(*)
  FROM (SELECT 1
          FROM jobs AS j @indexed(jobs_dead)
         WHERE j.state = 'FAILED_FINAL' AND j.retried_as IS NULL AND j.tenant_id = :tenant_id AND j.job_id >= :first AND j.job_id < :before
           AND @part(found, j)
         LIMIT :limit) AS counted
