-- picture_waiters: jobs that wait for keys of these attempts: what the lost attempt names, its step, and the facts of its job as in
-- `picture_jobs`.
-- takes: owners list, epoch, boot
SELECT w.guid, w.unit, @names(Activity, s),
       @part(job_facts, j),
       a.attempt, a.lease_id, a.status, a.lease_epoch = :epoch AND a.lease_expires_at > :boot, a.guid
  FROM :owners
 CROSS JOIN attempts AS w INDEXED BY attempts_that_wait
 CROSS JOIN steps AS s INDEXED BY steps_open
 CROSS JOIN jobs AS j
  LEFT JOIN attempts AS a
    ON a.job_id = j.job_id AND a.unit = '' AND @is(held, a.status)
  @part(newest, j)
 WHERE w.guid = wanted.value AND w.reason = 'DUPLICATE_COMMIT'
   AND s.job_id = w.job_id AND s.completed_at IS NULL AND s.kind = 'effect'
   AND s.dimension || '/' || s.name || '#' || s.occurrence = w.unit
   AND j.job_id = w.job_id
