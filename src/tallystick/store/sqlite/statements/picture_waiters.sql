-- picture_waiters: jobs that wait for keys of these attempts: what the lost attempt names, its step, and the facts of its job as in
-- `picture_jobs`.
-- takes: owners list, epoch, boot
SELECT w.guid, w.unit, @names(Activity, s),
       j.job_id, j.state, j.attempt, j.dimension, j.ready_at, j.hold, j.semaphore, j.root_ledger, j.start_ledger, j.start_acked_at,
       j.cancel_at, j.completed_at, j.rev, j.ledger_form, j.parent_job_id, j.parent_step, coalesce(m.arrived, 0),
       coalesce(m.created_at, 0), j.deadline_at, j.error_code,
       a.attempt, a.lease_id, a.status, a.lease_epoch = :epoch AND a.lease_expires_at > :boot, a.guid
  FROM :owners
 CROSS JOIN attempts AS w INDEXED BY attempts_that_wait
 CROSS JOIN steps AS s INDEXED BY steps_open
 CROSS JOIN jobs AS j
  LEFT JOIN attempts AS a
    ON a.job_id = j.job_id AND a.unit = '' AND @is(held, a.status)
  LEFT JOIN messages AS m
    ON m.guid = (SELECT newest.guid
                   FROM messages AS newest INDEXED BY messages_inbox
                  WHERE newest.job_id = j.job_id AND newest.acked_at IS NULL
                  ORDER BY newest.arrived DESC
                  LIMIT 1)
 WHERE w.guid = wanted.value AND w.reason = 'DUPLICATE_COMMIT'
   AND s.job_id = w.job_id AND s.completed_at IS NULL AND s.kind = 'effect'
   AND s.dimension || '/' || s.name || '#' || s.occurrence = w.unit
   AND j.job_id = w.job_id
