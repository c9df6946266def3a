-- picture_remotes: the remote steps of these workflows that are open.
-- takes: jobs list
SELECT job_id, dimension, name, occurrence, @names(RemoteStep)
  FROM steps @indexed(steps_open)
 WHERE job_id IN :jobs AND completed_at IS NULL AND kind = 'remote'
