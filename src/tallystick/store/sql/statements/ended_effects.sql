-- ended_effects: effects of a tenant that have ended before an instant, the last one first; among so many of all tenants.
-- takes: tenant_id text, before int, window int, limit int
SELECT @names(EffectRow, e)
  FROM (SELECT * FROM effect_keys WHERE ended_at IS NOT NULL AND ended_at < :before ORDER BY ended_at DESC LIMIT :window) AS e
 WHERE e.tenant_id = :tenant_id
 ORDER BY e.ended_at DESC, e.exec_id
 LIMIT :limit
