-- began: when the steps and waits of a job began whose facts follow another, by their places. Copies in a fork did not run,
-- and of a step that took no time, or is older than this, there is nothing to tell.
-- takes: job_id text, after int, limit int
SELECT n, created_at
  FROM steps
 WHERE job_id = :job_id AND n > :after AND origin_job_id IS NULL AND created_at < completed_at
 ORDER BY n
 LIMIT :limit
