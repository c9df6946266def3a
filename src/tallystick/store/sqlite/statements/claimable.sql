-- claimable: the due jobs of one queue and priority that this worker can run, the longest-waiting first, and of each
-- whether it is a suspect, in one number with the attempts that it has lost: a second question would cost as much as the first.
-- A row that cannot be claimed (with an attempt that is live, lost or committed) must not fail the claim of the others.
-- takes: queue, priority, wall, handlers list, attempts_default
SELECT job_id, attempt, handler, version, payload, options, dimension, deadline_at, created_at, head_n, head_hash,
       start_acked_at, parent_job_id, parent_step, state = 'CANCELLING', semaphore, idempotency_key, tags,
       CASE WHEN attempt > 0 THEN (SELECT 2 * charged + suspect FROM (@part(past, jobs))) ELSE 0 END
  FROM jobs
 WHERE queue = :queue AND priority = :priority AND ready_at <= :wall AND hold IS NULL
   AND (deadline_at IS NULL OR deadline_at > :wall OR state = 'CANCELLING')
   AND @is(claimable, state) AND handler || ' ' || version IN :handlers
   AND NOT EXISTS (SELECT 1
                     FROM attempts AS live
                    WHERE live.job_id = jobs.job_id AND live.unit = ''
                      AND @is(held, live.status))
 ORDER BY ready_at
