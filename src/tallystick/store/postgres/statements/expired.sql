-- expired: attempts that no clock protects any longer, with what is needed to judge them and the end of their chain.
-- $1 the clock the leases are on, $2 that clock's time if it is not this server's, $3 how many.
WITH clock AS MATERIALIZED (
  SELECT store_ms($2::bigint) AS now
)
SELECT a.job_id, a.attempt, a.lease_id, a.status, j.state = 'CANCELLING', a.guid, j.created_at, j.parent_job_id,
       j.parent_step, j.options,
       (SELECT count(*) FROM futile_attempts AS f WHERE f.job_id = a.job_id),
       newest.n, newest.event_hash
  FROM clock
 CROSS JOIN attempts AS a
 CROSS JOIN LATERAL (
       SELECT state, created_at, parent_job_id, parent_step, options, dimension
         FROM jobs
        WHERE jobs.job_id = a.job_id
       OFFSET 0) AS j
 CROSS JOIN LATERAL (
       SELECT facts.n, facts.event_hash
         FROM ((SELECT s.n, s.event_hash
                  FROM steps AS s
                 WHERE s.job_id = a.job_id AND s.dimension = j.dimension AND s.n IS NOT NULL
                 ORDER BY s.n DESC
                 LIMIT 1)
               UNION ALL
               (SELECT e.n, e.event_hash
                  FROM events AS e
                 WHERE e.job_id = a.job_id
                 ORDER BY e.job_id DESC, e.n DESC
                 LIMIT 1)) AS facts
        ORDER BY facts.n DESC
        LIMIT 1) AS newest
 WHERE a.status IN ('LEASED', 'IN_PROGRESS') AND a.unit = ''
   AND (a.lease_epoch <> $1 OR a.lease_expires_at <= clock.now)
 ORDER BY a.lease_expires_at
 LIMIT $3::bigint
