-- leases: for every worker with live attempts how many leases hold and how many ran out, for how long the oldest has, and one such job.
SELECT lease_owner,
       sum(lease_epoch = ?1 AND lease_expires_at > ?2),
       sum(lease_epoch <> ?1 OR lease_expires_at <= ?2),
       max(iif(lease_epoch = ?1, ?2 - lease_expires_at, NULL)),
       min(iif(lease_epoch <> ?1 OR lease_expires_at <= ?2, job_id, NULL))
  FROM attempts
 WHERE @is(held, status) AND unit = ''
 GROUP BY lease_owner
 ORDER BY 3 DESC, 1
 LIMIT ?3
