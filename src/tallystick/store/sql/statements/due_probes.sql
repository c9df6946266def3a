-- due_probes: effects in doubt whose probe is to be asked by an instant, the longest waiting first, of those that are listed.
-- takes: names list, now int, limit int
SELECT job_id, unit, rev, effect
  FROM effect_keys
 WHERE due_at IS NOT NULL AND due_at <= :now AND phase = 'IN_DOUBT' AND effect IN :names
 ORDER BY due_at
 LIMIT :limit
