-- claimable: the due jobs of one queue and priority that this worker can run, the longest-waiting first, and of each
-- whether it is a suspect: a worker was lost over it since it last made progress.
-- A row that cannot be claimed (being cancelled, or with a live attempt) must not fail the claim of the others.
SELECT job_id, attempt, handler, version, payload, options, dimension, deadline_at, created_at, head_n, head_hash,
       start_acked_at, parent_job_id, parent_step, state = 'CANCELLING', semaphore,
       CASE WHEN attempt > 0
            THEN EXISTS (SELECT 1 FROM futile_attempts AS f WHERE f.job_id = jobs.job_id AND f.reason = 'EXPIRED')
            ELSE 0 END
  FROM jobs
 WHERE queue = ?1 AND priority = ?2 AND ready_at <= ?3 AND hold IS NULL AND (state = 'QUEUED' OR state = 'IN_PROGRESS' OR state = 'CANCELLING')
   AND handler || ' ' || version IN (SELECT known.value FROM json_each(?4) AS known)
   AND NOT EXISTS (SELECT 1
                     FROM attempts AS live
                    WHERE live.job_id = jobs.job_id AND live.unit = '' AND live.status IN ('LEASED', 'IN_PROGRESS'))
 ORDER BY ready_at
