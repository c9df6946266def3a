-- deadline_over: jobs that were not asked to end and whose deadline has passed, the longest over first.
@job.deadline_at <= :now AND @job.completed_at IS NULL AND @job.state <> 'CANCELLING' ORDER BY @job.deadline_at
