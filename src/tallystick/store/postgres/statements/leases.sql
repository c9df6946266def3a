-- leases: for every worker with live attempts how many leases hold and how many ran out, for how long the oldest has, and one such job.
-- $1 the clock the leases are on, $2 that clock's time if it is not this server's, $3 how many.
WITH clock AS MATERIALIZED (
  SELECT store_ms($2::bigint) AS now
)
SELECT a.lease_owner,
       count(*) FILTER (WHERE a.lease_epoch = $1 AND a.lease_expires_at > clock.now),
       count(*) FILTER (WHERE a.lease_epoch <> $1 OR a.lease_expires_at <= clock.now) AS lost,
       max(clock.now - a.lease_expires_at) FILTER (WHERE a.lease_epoch = $1),
       min(a.job_id) FILTER (WHERE a.lease_epoch <> $1 OR a.lease_expires_at <= clock.now)
  FROM clock
 CROSS JOIN attempts AS a
 WHERE @is(held, a.status) AND a.unit = ''
 GROUP BY a.lease_owner
 ORDER BY lost DESC, a.lease_owner
 LIMIT $3::bigint
