-- end_waited_job: a job ends whose start message was acknowledged long ago; its semaphore has just reached zero.
UPDATE jobs
   SET state = ?3,
       result = ?4,
       error = ?5, error_code = ?6, error_message = ?7,
       completed_at = ?10, updated_at = ?10, head_n = ?8, head_hash = ?9, rev = rev + 1,
       hold = NULL, hold_reason = NULL
 WHERE job_id = ?1 AND attempt = ?2 AND state = iif(?3 = 'CANCELLED', 'CANCELLING', 'IN_PROGRESS') AND semaphore = 0 AND start_acked_at IS NOT NULL
