-- picture_waiters: jobs that wait for keys of effects of these jobs ($1): what the lost attempt names, its step, and the facts of
-- its job as in `picture_jobs`. $2 and $3 as in `picture_leases`. After `lock_waiters`.
SELECT w.guid, w.unit, @names(Activity, s),
       @part(job_facts, j),
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
  @part(newest, j)
