-- claimable: the due jobs of one queue and priority that this worker can run, the longest-waiting first, and of each
-- whether it is a suspect.
-- A row that cannot be claimed (with an attempt that is live, lost or committed) must not fail the claim of the others.
-- takes: queue, priority, wall, handlers list, attempts_default
SELECT job_id, attempt, handler, version, payload, options, dimension, deadline_at, created_at, head_n, head_hash,
       start_acked_at, parent_job_id, parent_step, state = 'CANCELLING', semaphore, @part(suspect, jobs)
  FROM jobs
 WHERE queue = :queue AND priority = :priority AND ready_at <= :wall AND hold IS NULL
   AND (state = 'QUEUED' OR state = 'IN_PROGRESS' OR state = 'CANCELLING') AND handler || ' ' || version IN :handlers
   AND NOT EXISTS (SELECT 1
                     FROM attempts AS live
                    WHERE live.job_id = jobs.job_id AND live.unit = '' AND live.status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED'))
 ORDER BY ready_at
