-- due: a job of the queue and priority of `level` that may be claimed by the time of `clock`.
@job.queue = level.queue AND @job.priority = level.priority AND @job.ready_at <= clock.wall
AND @job.ready_at IS NOT NULL AND @job.hold IS NULL AND @part(runnable, @job)
