-- expired: attempts that no clock protects any longer, of this boot (by time) and of earlier ones (all). What is committed
-- waits while its job is held; of effects those are looked for whose last call is not known to be over.
SELECT a.job_id, a.attempt, a.lease_id, a.unit
  FROM attempts AS a
  JOIN jobs AS j ON j.job_id = a.job_id
 WHERE @is(held, a.status)
   AND CASE WHEN a.unit = '' THEN j.completed_at IS NULL AND (a.status <> 'COMMITTED' OR j.hold IS NULL)
            ELSE EXISTS (SELECT 1
                           FROM effect_keys AS e
                          WHERE e.job_id = a.job_id AND e.unit = a.unit AND e.attempt = a.attempt AND e.outcome IS NULL
                            AND e.phase = 'CALLING')
            END
   AND ((a.lease_epoch = ?1 AND a.lease_expires_at <= ?2) OR a.lease_epoch < ?1 OR a.lease_epoch > ?1)
 ORDER BY a.lease_expires_at
 LIMIT ?3
