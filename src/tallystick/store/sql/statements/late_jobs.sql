-- late_jobs: jobs of a tenant whose grace is over or whose deadline has passed, of so many of each in the whole store.
-- takes: tenant_id text, now int, window int, limit int
SELECT @names(JobRow, j)
  FROM (SELECT over.job_id FROM (SELECT job_id FROM jobs WHERE @part(grace_over, jobs) LIMIT :window) AS over
        UNION ALL
        SELECT late.job_id FROM (SELECT job_id FROM jobs WHERE @part(deadline_over, jobs) LIMIT :window) AS late) AS those
 CROSS JOIN jobs AS j
 WHERE j.job_id = those.job_id AND j.tenant_id = :tenant_id
 LIMIT :limit
