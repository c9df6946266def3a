-- end_woken_job: end a job that a message drove: what it still has open, that message (1) or nothing (0), is closed, and
-- the result written with it. Runs after `end_attempt`, and after `close_driver` where that closes the message.
-- No row changed: the job moved on, or is being cancelled and wants to end otherwise, or obligations are still open.
UPDATE jobs
   SET state = ?3,
       result = ?4,
       error = ?5,
       error_code = ?6,
       error_message = ?7,
       hold = NULL,
       hold_reason = NULL,
       semaphore = 0,
       completed_at = ?10,
       updated_at = ?10,
       head_n = ?8,
       head_hash = ?9,
       rev = rev + 1
 WHERE job_id = ?1 AND attempt = ?2 AND state = iif(?3 = 'CANCELLED', 'CANCELLING', 'IN_PROGRESS') AND semaphore = ?11
   AND start_acked_at IS NOT NULL
