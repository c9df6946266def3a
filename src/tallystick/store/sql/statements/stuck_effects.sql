-- stuck_effects: effects in doubt that no hold shows, by key, each with the state of its job: those that only a person can answer for
-- while their job is not held for it, and those whose probe was due by an instant; of one tenant, if it is named. So many in doubt
-- are looked at.
-- takes: tenant_id text, until int, looked int, limit int
SELECT @names(EffectRow, doubtful), j.state
  FROM (SELECT *
          FROM effect_keys
         WHERE outcome IS NULL AND phase = 'IN_DOUBT' AND tenant_id >= coalesce(:tenant_id, '')
           AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
         ORDER BY tenant_id, key
         LIMIT :looked) AS doubtful
  LEFT JOIN jobs AS j ON j.job_id = doubtful.job_id
 WHERE doubtful.due_at <= :until OR (doubtful.due_at IS NULL AND (j.hold IS NULL OR j.hold <> 'IN_DOUBT'))
 ORDER BY doubtful.tenant_id, doubtful.key, doubtful.exec_id
 LIMIT :limit
