-- end_woken_job: end a job whose last obligation is the message that drove it: the semaphore falls to zero, the result
-- with it. Runs after `end_attempt` and `close_driver` in the same bundle.
-- No row changed: the job moved on, or is being cancelled and wants to end otherwise, or obligations are still open.
UPDATE jobs
   SET state = ?3,
       result = ?4,
       error = ?5,
       error_code = ?6,
       error_message = ?7,
       hold = NULL,
       hold_reason = NULL,
       semaphore = semaphore - 1,
       completed_at = ?10,
       updated_at = ?10,
       head_n = ?8,
       head_hash = ?9,
       rev = rev + 1
 WHERE job_id = ?1 AND attempt = ?2 AND state = iif(?3 = 'CANCELLED', 'CANCELLING', 'IN_PROGRESS') AND semaphore = 1
   AND start_acked_at IS NOT NULL
