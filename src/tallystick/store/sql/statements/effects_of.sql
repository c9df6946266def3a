-- effects_of: the effects of a job, in the order of their intents.
-- takes: job_id text
SELECT @names(EffectRow) FROM effect_keys WHERE job_id = :job_id ORDER BY created_at, exec_id
