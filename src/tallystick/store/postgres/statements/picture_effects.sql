-- picture_effects: the effects of these jobs ($1) that are open, and whether the lease of the last call is live. $2 and $3 as in
-- `picture_leases`.
SELECT @names(EffectRow, e), a.lease_epoch = $2 AND a.lease_expires_at > store_ms($3::bigint)
  FROM unnest($1::text[]) AS wanted (job_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM effect_keys
        WHERE effect_keys.job_id = wanted.job_id AND effect_keys.outcome IS NULL
       OFFSET 0) AS e
  JOIN attempts AS a ON a.job_id = e.job_id AND a.unit = e.unit AND a.attempt = e.attempt
