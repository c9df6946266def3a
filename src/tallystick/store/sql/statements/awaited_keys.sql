-- awaited_keys: the open effects of other jobs whose keys steps of a job wait for: the step, the effect, the state of its job. The
-- attempt of the step has lost the key; its message is `effect:` and the attempt that has it.
-- takes: job_id text, limit int
SELECT a.unit, @names(EffectRow, e), j.state
  FROM attempts AS a
  JOIN effect_keys AS e ON e.exec_id = substr(a.guid, 8)
  LEFT JOIN jobs AS j ON j.job_id = e.job_id
 WHERE a.job_id = :job_id AND a.reason = 'DUPLICATE_COMMIT' AND e.outcome IS NULL
 ORDER BY a.unit, a.attempt
 LIMIT :limit
