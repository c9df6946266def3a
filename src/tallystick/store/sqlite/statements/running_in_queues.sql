-- running_in_queues: how many jobs of each queue a worker has under a lease that holds. So many leases are read at most.
SELECT j.queue, count(*)
  FROM (SELECT job_id
          FROM attempts
         WHERE @is(held, status) AND unit = '' AND lease_epoch = ?1 AND lease_expires_at > ?2
         LIMIT ?3) AS live
 CROSS JOIN jobs AS j
 WHERE j.job_id = live.job_id
 GROUP BY j.queue
