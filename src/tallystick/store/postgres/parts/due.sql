-- due: a job of the queue and priority of `level` that may be claimed by the time of `clock`; one with an attempt that is live,
-- lost or committed may not.
@job.queue = level.queue AND @job.priority = level.priority AND @job.ready_at <= clock.wall
AND @job.ready_at IS NOT NULL AND @job.hold IS NULL
AND (@job.deadline_at IS NULL OR @job.deadline_at > clock.wall OR @job.state = 'CANCELLING') AND @is(claimable, @job.state)
AND @job.handler || ' ' || @job.version = ANY (:handlers)
AND (SELECT count(*)
       FROM attempts AS live
      WHERE live.job_id = @job.job_id AND live.unit = '' AND @is(held, live.status)) = 0
