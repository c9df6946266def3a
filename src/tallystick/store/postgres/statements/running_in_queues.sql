-- running_in_queues: how many jobs of each queue a worker has under a lease that holds. So many leases are read at most.
-- $1 the clock the leases are on, $2 that clock's time if it is not this server's, $3 how many.
WITH clock AS MATERIALIZED (
  SELECT store_ms($2::bigint) AS now
), live AS MATERIALIZED (
  SELECT a.job_id
    FROM clock
   CROSS JOIN attempts AS a
   WHERE @is(held, a.status) AND a.unit = '' AND a.lease_epoch = $1 AND a.lease_expires_at > clock.now
   LIMIT $3::bigint
)
SELECT j.queue, count(*)
  FROM live
  JOIN jobs AS j ON j.job_id = live.job_id
 GROUP BY j.queue
