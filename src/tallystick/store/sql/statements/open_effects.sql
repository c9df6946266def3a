-- open_effects: the effects of any name that have a key and have not ended.
-- takes: tenant text, key text
SELECT @names(EffectRow) FROM effect_keys WHERE tenant_id = :tenant AND key = :key AND outcome IS NULL ORDER BY exec_id
