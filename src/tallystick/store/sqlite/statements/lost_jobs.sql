-- lost_jobs: jobs of a tenant with an attempt that no clock protects any longer, the longest first; `expired` says which those are.
-- As many rows are read as there are leases.
-- takes: tenant_id text, epoch text, now int, limit int
SELECT @names(JobRow, j)
  FROM attempts AS a
 CROSS JOIN jobs AS j
 WHERE j.job_id = a.job_id AND j.tenant_id = :tenant_id AND @is(held, a.status)
   AND (a.lease_epoch <> :epoch OR a.lease_expires_at <= :now)
   AND CASE WHEN a.unit = '' THEN j.completed_at IS NULL AND (a.status <> 'COMMITTED' OR j.hold IS NULL)
            ELSE EXISTS (SELECT 1
                           FROM effect_keys AS e
                          WHERE e.job_id = a.job_id AND e.unit = a.unit AND e.attempt = a.attempt AND e.outcome IS NULL
                            AND e.phase = 'CALLING')
            END
 GROUP BY j.job_id
 ORDER BY min(a.lease_expires_at)
 LIMIT :limit
