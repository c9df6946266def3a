-- ended_effects: a page of effects of a tenant that have ended, the last one first.
-- takes: tenant_id text, until int, before_exec text, limit int
SELECT @names(EffectRow)
  FROM effect_keys
 WHERE tenant_id = :tenant_id AND ended_at IS NOT NULL AND ended_at <= :until
   AND (ended_at < :until OR exec_id < :before_exec)
 ORDER BY ended_at DESC, exec_id DESC
 LIMIT :limit
