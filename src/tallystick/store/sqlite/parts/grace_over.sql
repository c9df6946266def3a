-- grace_over: jobs that were asked to end and have not, and whose grace is over, the longest over first.
@job.state = 'CANCELLING' AND @job.cancel_at <= :now ORDER BY @job.cancel_at
