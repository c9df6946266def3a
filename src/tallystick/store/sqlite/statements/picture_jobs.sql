-- picture_jobs: the facts of jobs that decisions read, with the newest arrival in the inbox of each, and the attempt that holds it or
-- is committed, with whether its lease is live by this clock. No row: there is no such job.
-- takes: jobs list, epoch, boot
SELECT @part(job_facts, j),
       a.attempt, a.lease_id, a.status, a.lease_epoch = :epoch AND a.lease_expires_at > :boot, a.guid
  FROM :jobs
 CROSS JOIN jobs AS j
  LEFT JOIN attempts AS a
    ON a.job_id = j.job_id AND a.unit = '' AND @is(held, a.status)
  @part(newest, j)
 WHERE j.job_id = wanted.value
