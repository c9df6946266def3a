-- abort_attempt: the grace of a cancellation is over: whoever runs the job is fenced from here on.
UPDATE attempts
   SET status = 'ABORTED', reason = 'CANCELLED', finished_at = $2
 WHERE job_id = $1 AND unit = '' AND status IN ('LEASED', 'IN_PROGRESS')
