-- deadline_over: jobs that were not asked to end and whose deadline has passed, the longest over first.
@job.open_deadline IS NOT NULL AND @job.open_deadline <= :now AND @job.asked_at IS NULL ORDER BY @job.open_deadline
