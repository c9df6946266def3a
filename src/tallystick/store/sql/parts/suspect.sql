-- suspect: since a job last made progress two workers were lost over it, or one and its next attempt is its last. Options
-- that cannot be read count as the default.
CASE WHEN @job.attempt > 0
     THEN (SELECT count(*) FILTER (WHERE f.reason = 'EXPIRED') > 1
               OR (count(*) FILTER (WHERE f.reason = 'EXPIRED') > 0
                   AND count(*) + 1 >= coalesce(@part(attempts_max, @job), :attempts_default))
             FROM futile_attempts AS f
            WHERE f.job_id = @job.job_id)
     ELSE false END
