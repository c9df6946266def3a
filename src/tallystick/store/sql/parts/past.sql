-- past: how many attempts a job has lost since it last made progress, and whether it is a suspect: two workers were lost over
-- it, or one and its next attempt is its last. Options that cannot be read count as the default.
SELECT count(*) AS charged,
       count(*) FILTER (WHERE f.reason = 'EXPIRED') > 1
       OR (count(*) FILTER (WHERE f.reason = 'EXPIRED') > 0
           AND count(*) + 1 >= coalesce(@part(attempts_max, @job), :attempts_default)) AS suspect
  FROM futile_attempts AS f
 WHERE f.job_id = @job.job_id AND @job.attempt > 0
