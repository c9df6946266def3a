-- picture_leases: the attempts that hold these jobs ($1), and the parents of those that may end ($2), and whether each lease
-- is live. $3 the clock the leases are on, $4 that clock's time if it is not this server's.
SELECT a.job_id, a.attempt, a.lease_id, a.status, a.lease_epoch = $3 AND a.lease_expires_at > store_ms($4::bigint), a.guid
  FROM unnest(ARRAY(SELECT unnest($1::text[])
                    UNION
                    SELECT parent_job_id FROM jobs WHERE job_id = ANY ($2::text[]) AND parent_step IS NOT NULL)) AS wanted (job_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM attempts
        WHERE attempts.job_id = wanted.job_id AND attempts.unit = '' AND @is(held, attempts.status)
       OFFSET 0) AS a
