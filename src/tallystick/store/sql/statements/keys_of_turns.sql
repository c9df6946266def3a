-- keys_of_turns: the keys of effects that turns of a job leave when they are trimmed. Runs before `trim_units`.
-- takes: job_id text, dimension int
SELECT @fields(EffectRow, keys)
  FROM attempts
  JOIN effect_keys AS keys ON keys.exec_id = attempts.exec_id
 WHERE attempts.job_id = :job_id AND attempts.unit <> ''
   AND attempts.unit IN (SELECT steps.dimension || '/' || steps.name || '#' || steps.occurrence
                           FROM steps
                          WHERE steps.job_id = :job_id AND steps.dimension <= :dimension AND steps.kind = 'effect')
