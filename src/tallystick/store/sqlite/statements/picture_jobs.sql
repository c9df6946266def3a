-- picture_jobs: the facts of jobs that decisions read, with the newest arrival in the inbox of each, and the attempt that holds it or
-- is committed, with whether its lease is live by this clock. No row: there is no such job.
-- takes: jobs list, epoch, boot
SELECT j.job_id, j.state, j.attempt, j.dimension, j.ready_at, j.hold, j.semaphore, j.root_ledger, j.start_ledger, j.start_acked_at,
       j.cancel_at, j.completed_at, j.rev, j.ledger_form, j.parent_job_id, j.parent_step, coalesce(m.arrived, 0),
       coalesce(m.created_at, 0), j.deadline_at, j.error_code,
       a.attempt, a.lease_id, a.status, a.lease_epoch = :epoch AND a.lease_expires_at > :boot, a.guid
  FROM :jobs
 CROSS JOIN jobs AS j
  LEFT JOIN attempts AS a
    ON a.job_id = j.job_id AND a.unit = '' AND @is(held, a.status)
  LEFT JOIN messages AS m
    ON m.guid = (SELECT newest.guid
                   FROM messages AS newest INDEXED BY messages_inbox
                  WHERE newest.job_id = j.job_id AND newest.acked_at IS NULL
                  ORDER BY newest.arrived DESC
                  LIMIT 1)
 WHERE j.job_id = wanted.value
