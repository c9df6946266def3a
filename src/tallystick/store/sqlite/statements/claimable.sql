-- claimable: the due jobs of one queue and priority that this worker can run, the longest-waiting first, and of each
-- whether it is a suspect.
-- takes: queue, priority, wall, handlers list, attempts_default
SELECT @part(claimed, jobs)
  FROM jobs
 WHERE queue = :queue AND priority = :priority AND ready_at <= :wall AND hold IS NULL AND @part(runnable, jobs)
 ORDER BY ready_at
