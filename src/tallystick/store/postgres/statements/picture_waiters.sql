-- picture_waiters: jobs that wait for keys of effects of these jobs ($1): what the lost attempt names, its step, and the facts of
-- its job as in `picture_jobs`. $2 and $3 as in `picture_leases`. After `lock_waiters`.
SELECT w.guid, w.unit, @names(Activity, s),
       j.job_id, j.state, j.attempt, j.dimension, j.ready_at, j.hold, j.semaphore, j.root_ledger, j.start_ledger, j.start_acked_at,
       j.cancel_at, j.completed_at, j.rev, j.ledger_form, j.parent_job_id, j.parent_step,
       coalesce(newest.arrived, 0), coalesce(newest.created_at, 0), j.deadline_at, j.error_code,
       a.attempt, a.lease_id, a.status, a.lease_epoch = $2 AND a.lease_expires_at > store_ms($3::bigint), a.guid
  FROM unnest($1::text[]) AS wanted (job_id)
 CROSS JOIN LATERAL (
       SELECT exec_id
         FROM effect_keys
        WHERE effect_keys.job_id = wanted.job_id AND effect_keys.outcome IS NULL
       OFFSET 0) AS e
 CROSS JOIN LATERAL (
       SELECT *
         FROM attempts
        WHERE attempts.guid = 'effect:' || e.exec_id AND attempts.reason = 'DUPLICATE_COMMIT'
       OFFSET 0) AS w
 CROSS JOIN LATERAL (
       SELECT *
         FROM steps
        WHERE steps.job_id = w.job_id AND steps.completed_at IS NULL AND steps.kind = 'effect'
          AND steps.dimension || '/' || steps.name || '#' || steps.occurrence = w.unit
       OFFSET 0) AS s
 CROSS JOIN LATERAL (SELECT * FROM jobs WHERE jobs.job_id = w.job_id OFFSET 0) AS j
  LEFT JOIN LATERAL (
       SELECT *
         FROM attempts
        WHERE attempts.job_id = j.job_id AND attempts.unit = '' AND @is(held, attempts.status)
       OFFSET 0) AS a ON true
  LEFT JOIN LATERAL (
       SELECT m.arrived, m.created_at
         FROM messages AS m
        WHERE m.job_id = j.job_id AND m.acked_at IS NULL AND m.arrived >= 0
        ORDER BY m.arrived DESC
        LIMIT 1) AS newest ON true
