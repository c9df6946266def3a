-- grace_over: jobs that were asked to end and have not, and whose grace is over, the longest over first.
@job.asked_at IS NOT NULL AND @job.asked_at <= :now ORDER BY @job.asked_at
