-- expired: attempts that no clock protects any longer, of this boot (by time) and of earlier ones (all).
SELECT a.job_id, a.attempt, a.lease_id, a.status, j.state = 'CANCELLING', a.guid, j.created_at, j.options, j.dimension,
       j.parent_job_id, j.parent_step
  FROM attempts AS a
  JOIN jobs AS j ON j.job_id = a.job_id
 WHERE a.status IN ('LEASED', 'IN_PROGRESS') AND a.unit = ''
   AND ((a.lease_epoch = ?1 AND a.lease_expires_at <= ?2) OR a.lease_epoch < ?1 OR a.lease_epoch > ?1)
 ORDER BY a.lease_expires_at
 LIMIT ?3
