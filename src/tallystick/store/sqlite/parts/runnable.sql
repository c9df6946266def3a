-- runnable: a job that this worker can run and may claim now, if it is due; one with an attempt that is live, lost or committed
-- may not be claimed, and must not fail the claim of the others.
(@job.deadline_at IS NULL OR @job.deadline_at > :wall OR @job.state = 'CANCELLING')
AND @is(claimable, @job.state) AND @job.handler || ' ' || @job.version IN :handlers
AND NOT EXISTS (SELECT 1
                  FROM attempts AS live
                 WHERE live.job_id = @job.job_id AND live.unit = '' AND @is(held, live.status))
