-- remote_facts: the remote steps of a workflow that follow a fact, each with the place of its own and all that its row says.
-- takes: job_id text, after int, limit int
SELECT n, job_id, dimension, name, occurrence, @names(RemoteStep)
  FROM steps
 WHERE job_id = :job_id AND n > :after AND kind = 'remote'
 ORDER BY n
 LIMIT :limit
