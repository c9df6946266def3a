-- The rules that a remote step of a workflow was declared with are kept in its row, as those of a protocol job in that of the job.

ALTER TABLE steps ADD COLUMN options TEXT;

-- What never went, for people: dead letters, and what was withdrawn.
CREATE INDEX outbox_never_sent ON outbox (outbox_id) WHERE state = 'FAILED_FINAL';

DROP TRIGGER steps_guard ON steps;
CREATE TRIGGER steps_guard BEFORE UPDATE ON steps FOR EACH ROW
WHEN (OLD.state = ANY ('{SUCCEEDED,FAILED_FINAL,CANCELLED}') AND
      ROW (NEW.job_id, NEW.dimension, NEW.name, NEW.occurrence, NEW.kind, NEW.state, NEW.n, NEW.attempt, NEW.created_at,
           NEW.completed_at, NEW.result, NEW.error, NEW.notes, NEW.prev_hash, NEW.event_hash, NEW.origin_job_id,
           NEW.origin_dimension, NEW.semaphore, NEW.threshold, NEW.failed, NEW.step_index, NEW.step_type, NEW.service,
           NEW.attempt_no, NEW.lease_id, NEW.lease_expires_at, NEW.input_ref, NEW.workspace_ref, NEW.output_ref, NEW.payload,
           NEW.resolved_mode, NEW.lane, NEW.routing_key_used, NEW.decision_source, NEW.decision_reason, NEW.last_error_code,
           NEW.last_error_message, NEW.updated_at, NEW.misplaced, NEW.acked_at, NEW.answers, NEW.options)
      IS DISTINCT FROM
      ROW (OLD.job_id, OLD.dimension, OLD.name, OLD.occurrence, OLD.kind, OLD.state, OLD.n, OLD.attempt, OLD.created_at,
           OLD.completed_at, OLD.result, OLD.error, OLD.notes, OLD.prev_hash, OLD.event_hash, OLD.origin_job_id,
           OLD.origin_dimension, OLD.semaphore, OLD.threshold, OLD.failed, OLD.step_index, OLD.step_type, OLD.service,
           OLD.attempt_no, OLD.lease_id, OLD.lease_expires_at, OLD.input_ref, OLD.workspace_ref, OLD.output_ref, OLD.payload,
           OLD.resolved_mode, OLD.lane, OLD.routing_key_used, OLD.decision_source, OLD.decision_reason, OLD.last_error_code,
           OLD.last_error_message, OLD.updated_at, OLD.misplaced, OLD.acked_at, OLD.answers, OLD.options))
EXECUTE FUNCTION refuse_change('FINAL: this step has ended and cannot change');
