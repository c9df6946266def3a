-- charged_since_progress: how many charged attempts a job has had since it last recorded anything, and whether a worker
-- was lost over any of them.
SELECT count(*), coalesce(max(reason = 'EXPIRED'), 0)
  FROM attempts
 WHERE job_id = ?1 AND unit = '' AND charged = 1
   AND attempt >= coalesce((SELECT max(attempt) FROM steps WHERE steps.job_id = ?1), 0)
