-- expired: attempts that no clock protects any longer, of this boot (by time) and of earlier ones (all). What is committed
-- waits while its job is held; of effects only what is committed is looked for.
SELECT a.job_id, a.attempt, a.lease_id, a.unit
  FROM attempts AS a
  JOIN jobs AS j ON j.job_id = a.job_id
 WHERE @is(held, a.status) AND j.completed_at IS NULL
   AND ((a.status = 'COMMITTED' AND j.hold IS NULL) OR (a.status <> 'COMMITTED' AND a.unit = ''))
   AND ((a.lease_epoch = ?1 AND a.lease_expires_at <= ?2) OR a.lease_epoch < ?1 OR a.lease_epoch > ?1)
 ORDER BY a.lease_expires_at
 LIMIT ?3
