-- claimable: the due jobs of one queue and priority that this worker can run, the longest-waiting first, and of each
-- whether it is a suspect: since it last made progress two workers were lost over it, or one and its next attempt is its
-- last. Options that cannot be read count as the default.
-- A row that cannot be claimed (with an attempt that is live, lost or committed) must not fail the claim of the others.
SELECT job_id, attempt, handler, version, payload, options, dimension, deadline_at, created_at, head_n, head_hash,
       start_acked_at, parent_job_id, parent_step, state = 'CANCELLING', semaphore,
       CASE WHEN attempt > 0
            THEN (SELECT total(f.reason = 'EXPIRED') > 1 OR (total(f.reason = 'EXPIRED') > 0 AND count(*) + 1 >=
                         coalesce(CASE WHEN json_valid(options) THEN options ->> 'attempts_max' END, 3))
                    FROM futile_attempts AS f
                   WHERE f.job_id = jobs.job_id)
            ELSE 0 END
  FROM jobs
 WHERE queue = ?1 AND priority = ?2 AND ready_at <= ?3 AND hold IS NULL AND (state = 'QUEUED' OR state = 'IN_PROGRESS' OR state = 'CANCELLING')
   AND handler || ' ' || version IN (SELECT known.value FROM json_each(?4) AS known)
   AND NOT EXISTS (SELECT 1
                     FROM attempts AS live
                    WHERE live.job_id = jobs.job_id AND live.unit = '' AND live.status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED'))
 ORDER BY ready_at
