-- keys_named: the keys of effects of a job that have these units.
-- takes: job_id text, units list
SELECT @names(EffectRow) FROM effect_keys WHERE job_id = :job_id AND unit IN :units
