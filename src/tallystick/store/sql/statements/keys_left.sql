-- keys_left: the keys of effects that jobs leave when they are removed, of turns that are not trimmed, each with its attempt.
-- takes: jobs list
SELECT @fields(EffectRow, keys)
  FROM attempts
  JOIN effect_keys AS keys ON keys.exec_id = attempts.exec_id
 WHERE attempts.job_id IN :jobs AND attempts.unit <> ''
