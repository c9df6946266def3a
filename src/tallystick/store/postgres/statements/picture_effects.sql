-- picture_effects: the attempts at effects that are under way or committed; $1 job and unit of each, $2 and $3 as in `picture_leases`.
SELECT a.job_id, a.attempt, a.lease_id, a.status, a.lease_epoch = $2 AND a.lease_expires_at > store_ms($3::bigint), a.guid
  FROM jsonb_array_elements($1::jsonb) AS listed (r)
 CROSS JOIN LATERAL (
       SELECT *
         FROM attempts
        WHERE attempts.job_id = r ->> 0 AND attempts.unit = r ->> 1 AND @is(held, attempts.status)
       OFFSET 0) AS a
