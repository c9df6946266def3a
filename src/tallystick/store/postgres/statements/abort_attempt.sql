-- abort_attempt: the grace of a cancellation is over: whoever runs the job is fenced from here on.
-- No row changed: this lease is not the live one.
UPDATE attempts
   SET status = 'ABORTED', reason = 'CANCELLED', finished_at = $4
 WHERE job_id = $1 AND unit = '' AND attempt = $2 AND lease_id = $3 AND status IN ('LEASED', 'IN_PROGRESS')
