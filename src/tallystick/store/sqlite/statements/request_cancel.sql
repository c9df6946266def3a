-- request_cancel: a job that runs is asked to end; its holder learns it, and is made to when the grace is over.
-- No row changed: it is being cancelled already, has ended, or is in another attempt.
UPDATE jobs
   SET state = 'CANCELLING', hold = NULL, hold_reason = NULL, cancel_at = ?3, updated_at = ?4, rev = rev + 1
 WHERE job_id = ?1 AND attempt = ?2 AND state IN ('QUEUED', 'DISPATCHING', 'IN_PROGRESS')
