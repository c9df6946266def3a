-- withdraw_directives: what a job has not sent never goes. The guard is the state: what is out is not touched.
-- takes: job_id, state, reason, at
UPDATE outbox
   SET state = :state, reason = :reason, rev = rev + 1, updated_at = :at
 WHERE job_id = :job_id AND state = 'PENDING'
