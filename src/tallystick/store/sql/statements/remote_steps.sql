-- remote_steps: a page of the remote steps of a workflow behind a place, without copies that a fork was born with.
-- takes: job_id text, dimension int, name text, occurrence int, limit int
SELECT job_id, dimension, name, occurrence, @names(RemoteStep)
  FROM steps
 WHERE job_id = :job_id AND (dimension, name, occurrence) > (:dimension, :name, :occurrence) AND kind = 'remote'
   AND origin_job_id IS NULL
 ORDER BY dimension, name, occurrence
 LIMIT :limit
