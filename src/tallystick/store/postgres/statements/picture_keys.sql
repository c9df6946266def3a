-- picture_keys: the effects that have these keys ($1, a list): open ones, those that have happened, and refusals that keep theirs. After `lock_keys`.
SELECT @names(EffectRow, e)
  FROM jsonb_array_elements($1::jsonb) AS r
 CROSS JOIN LATERAL (
       SELECT *
         FROM effect_keys
        WHERE effect_keys.tenant_id = r ->> 0 AND effect_keys.effect = r ->> 1 AND effect_keys.key = r ->> 2
          AND (effect_keys.outcome IS NULL OR effect_keys.outcome = 'HAPPENED' OR effect_keys.kept = 1)
       OFFSET 0) AS e
