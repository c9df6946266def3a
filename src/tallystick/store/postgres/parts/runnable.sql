-- runnable: a job that this worker can run and may claim by the time of `clock`; one with an attempt that is live, lost or
-- committed may not.
(@job.deadline_at IS NULL OR @job.deadline_at > clock.wall OR @job.state = 'CANCELLING') AND @is(claimable, @job.state)
AND @job.handler || ' ' || @job.version = ANY (:handlers)
AND (SELECT count(*)
       FROM attempts AS live
      WHERE live.job_id = @job.job_id AND live.unit = '' AND @is(held, live.status)) = 0
