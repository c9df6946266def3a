-- open_keys: the effects of a job that have not ended, in the order of their intents.
-- takes: job_id text, limit int
SELECT @names(EffectRow)
  FROM effect_keys
 WHERE job_id = :job_id AND outcome IS NULL
 ORDER BY created_at, exec_id
 LIMIT :limit
