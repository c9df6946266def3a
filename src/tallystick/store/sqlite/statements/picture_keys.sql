-- picture_keys: the effects that have these keys: open ones, those that have happened, and refusals that keep theirs.
-- takes: keys list
SELECT @names(EffectRow, e)
  FROM :keys
 CROSS JOIN effect_keys AS e
 WHERE e.tenant_id = wanted.value ->> 0 AND e.effect = wanted.value ->> 1 AND e.key = wanted.value ->> 2
   AND (e.outcome IS NULL OR e.outcome = 'HAPPENED' OR e.kept = 1)
