-- move_remote: the row of a remote step as a decision about its job wants it, guarded by its revision. Result and error come with
-- its end. No row changed: it is not as it was when it was looked at.
-- takes: RemoteStep, job_id, dimension, name, occurrence, before, at
UPDATE steps
   SET state = :state, ledger = :ledger, rev = :rev, attempt_no = :attempt_no, lease_id = :lease_id,
       lease_expires_at = :lease_expires_at, acked_at = :acked_at, answers = :answers, input_ref = :input_ref,
       workspace_ref = :workspace_ref, output_ref = :output_ref, resolved_mode = :resolved_mode, lane = :lane,
       routing_key_used = :routing_key_used, decision_source = :decision_source, decision_reason = :decision_reason,
       last_error_code = :last_error_code, last_error_message = :last_error_message,
       updated_at = :at
 WHERE job_id = :job_id AND dimension = :dimension AND name = :name AND occurrence = :occurrence AND rev = :before
   AND kind IN ('remote', 'protocol')
