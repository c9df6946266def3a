-- picture_jobs: the facts of a job that decisions read; the end of its inbox is `picture_inbox`. No row: there is no such job.
SELECT job_id, state, attempt, dimension, ready_at, hold, semaphore, root_ledger, start_ledger, start_acked_at, cancel_at,
       completed_at, rev, ledger_form, parent_job_id, parent_step, 0, 0
  FROM jobs
 WHERE job_id = ?1
