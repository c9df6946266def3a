-- withdraw_directives: what jobs have not sent never goes. The guard is the state: what is out is not touched.
-- takes: jobs text[], state text, reason text, wall int
UPDATE outbox
   SET state = :state, reason = :reason, rev = rev + 1, updated_at = :wall
 WHERE job_id = ANY (:jobs) AND state = 'PENDING'
