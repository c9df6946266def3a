-- picture_jobs: the facts of a job that decisions read, and the attempt that holds it or is committed, with whether its lease is
-- live by this clock; the end of its inbox is `picture_inbox`. No row: there is no such job.
-- takes: job_id, epoch, boot
SELECT j.job_id, j.state, j.attempt, j.dimension, j.ready_at, j.hold, j.semaphore, j.root_ledger, j.start_ledger, j.start_acked_at,
       j.cancel_at, j.completed_at, j.rev, j.ledger_form, j.parent_job_id, j.parent_step, 0, 0, j.deadline_at, j.error_code,
       a.attempt, a.lease_id, a.status, a.lease_epoch = :epoch AND a.lease_expires_at > :boot, a.guid
  FROM jobs AS j
  LEFT JOIN attempts AS a
    ON a.job_id = j.job_id AND a.unit = '' AND @is(held, a.status)
 WHERE j.job_id = :job_id
