-- open_effects_page: a page of effects of a tenant whose outcome is unknown, by key.
-- takes: tenant_id text, after_key text, after_exec text, limit int
SELECT @names(EffectRow)
  FROM effect_keys
 WHERE tenant_id = :tenant_id AND outcome IS NULL AND key >= :after_key
   AND (key > :after_key OR exec_id > :after_exec)
 ORDER BY key, exec_id
 LIMIT :limit
