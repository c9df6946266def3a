-- expired: attempts that no clock protects any longer. What is committed waits while its job is held; of effects those are
-- looked for whose last call is not known to be over. $1 the clock the leases are on, $2 that clock's time if it is not this server's, $3 how many.
WITH clock AS MATERIALIZED (
  SELECT store_ms($2::bigint) AS now
)
SELECT a.job_id, a.attempt, a.lease_id, a.unit
  FROM clock
 CROSS JOIN attempts AS a
 CROSS JOIN LATERAL (SELECT hold, completed_at FROM jobs WHERE jobs.job_id = a.job_id OFFSET 0) AS j
 WHERE @is(held, a.status)
   AND CASE WHEN a.unit = '' THEN j.completed_at IS NULL AND (a.status <> 'COMMITTED' OR j.hold IS NULL)
            ELSE EXISTS (SELECT 1
                           FROM effect_keys AS e
                          WHERE e.job_id = a.job_id AND e.unit = a.unit AND e.attempt = a.attempt AND e.outcome IS NULL
                            AND e.phase = 'CALLING')
            END
   AND (a.lease_epoch <> $1 OR a.lease_expires_at <= clock.now)
 ORDER BY a.lease_expires_at
 LIMIT $3::bigint
