-- kept_keys: a page of keys of effects, and whether the job and the attempt of each are there.
-- takes: after text, limit int
SELECT keys.exec_id, keys.job_id, keys.unit, jobs.job_id IS NOT NULL, attempts.job_id IS NOT NULL
  FROM effect_keys AS keys
  LEFT JOIN jobs ON jobs.job_id = keys.job_id
  LEFT JOIN attempts ON attempts.job_id = keys.job_id AND attempts.unit = keys.unit AND attempts.attempt = keys.attempt
 WHERE keys.exec_id > :after
 ORDER BY keys.exec_id
 LIMIT :limit
