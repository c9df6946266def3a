-- lock_keys: no other transaction decides which job has these keys of effects ($1), or those of effects of these jobs ($2), until this
-- transaction ends. A free key has no row that could be held. Before all other locks, and in their order.
SELECT pg_advisory_xact_lock(hashtextextended(wanted.key, 0))
  FROM (SELECT unnest($1::text[]) AS key
        UNION
        SELECT e.tenant_id || E'\n' || e.effect || E'\n' || e.key
          FROM unnest($2::text[]) AS listed (job_id)
         CROSS JOIN LATERAL (
               SELECT *
                 FROM effect_keys
                WHERE effect_keys.job_id = listed.job_id AND effect_keys.outcome IS NULL
               OFFSET 0) AS e
         ORDER BY key) AS wanted
