-- keys_to_go: effects that ended long enough ago, of jobs that are gone, the oldest first.
-- takes: ended_by int, limit int
SELECT @names(EffectRow)
  FROM effect_keys
 WHERE ended_at <= :ended_by AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.job_id = effect_keys.job_id)
 ORDER BY ended_at
 LIMIT :limit
