-- request_cancel: a job that runs is asked to end; its holder learns it, and is made to when the grace is over.
-- No row changed: it is being cancelled already, or has ended.
UPDATE jobs
   SET state = 'CANCELLING', cancel_at = $2, updated_at = $3, rev = rev + 1
 WHERE job_id = $1 AND state IN ('QUEUED', 'DISPATCHING', 'IN_PROGRESS')
