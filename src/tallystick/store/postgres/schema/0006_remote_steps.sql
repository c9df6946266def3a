-- Remote steps: what their workers have answered, the service a directive is for and how it travels. The lifecycles list the moves
-- that reports make which overtake each other, and a protocol job is born with its first directive.

ALTER TABLE steps ADD COLUMN acked_at BIGINT;
ALTER TABLE steps ADD COLUMN answers TEXT;
ALTER TABLE outbox ADD COLUMN service TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN via TEXT COLLATE "C" NOT NULL DEFAULT 'pull';
ALTER TABLE outbox ADD COLUMN taken_by TEXT;
ALTER TABLE outbox ADD COLUMN reason TEXT;

CREATE INDEX steps_due ON steps (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX outbox_of_service ON outbox (service, next_try_at) WHERE state = 'PENDING' AND via = 'pull';
CREATE INDEX outbox_taken ON outbox (taken_by, sent_at) WHERE taken_by IS NOT NULL;

DROP TRIGGER jobs_births ON jobs;
-- rule: postgres-births job jobs.state
CREATE TRIGGER jobs_births BEFORE INSERT ON jobs FOR EACH ROW
WHEN (NOT (NEW.state = ANY ('{QUEUED,IN_PROGRESS,DISPATCHING}')))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: no job begins in this state');
-- end rule

DROP TRIGGER jobs_moves ON jobs;
DROP TRIGGER jobs_ledger ON jobs;
-- rule: postgres-moves job jobs.state.start_ledger
CREATE TRIGGER jobs_moves BEFORE UPDATE ON jobs FOR EACH ROW
WHEN (OLD.state <> NEW.state AND OLD.state || '>' || NEW.state <> ALL ('{
    QUEUED>DISPATCHING,
    DISPATCHING>IN_PROGRESS,
    IN_PROGRESS>IN_PROGRESS,
    IN_PROGRESS>SUCCEEDED,
    IN_PROGRESS>FAILED_FINAL,
    DISPATCHING>FAILED_FINAL,
    QUEUED>CANCELLING,
    DISPATCHING>CANCELLING,
    IN_PROGRESS>CANCELLING,
    CANCELLING>CANCELLED,
    QUEUED>IN_PROGRESS,
    QUEUED>FAILED_FINAL,
    DISPATCHING>SUCCEEDED,
    QUEUED>CANCELLED,
    DISPATCHING>CANCELLED,
    IN_PROGRESS>CANCELLED}'))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: the job lifecycle has no such move');

CREATE TRIGGER jobs_ledger BEFORE UPDATE ON jobs FOR EACH ROW
WHEN (NEW.start_ledger < OLD.start_ledger)
EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');
-- end rule

DROP TRIGGER steps_guard ON steps;
CREATE TRIGGER steps_guard BEFORE UPDATE ON steps FOR EACH ROW
WHEN (OLD.state = ANY ('{SUCCEEDED,FAILED_FINAL,CANCELLED}') AND
      ROW (NEW.job_id, NEW.dimension, NEW.name, NEW.occurrence, NEW.kind, NEW.state, NEW.n, NEW.attempt, NEW.created_at,
           NEW.completed_at, NEW.result, NEW.error, NEW.notes, NEW.prev_hash, NEW.event_hash, NEW.origin_job_id,
           NEW.origin_dimension, NEW.semaphore, NEW.threshold, NEW.failed, NEW.step_index, NEW.step_type, NEW.service,
           NEW.attempt_no, NEW.lease_id, NEW.lease_expires_at, NEW.input_ref, NEW.workspace_ref, NEW.output_ref, NEW.payload,
           NEW.resolved_mode, NEW.lane, NEW.routing_key_used, NEW.decision_source, NEW.decision_reason, NEW.last_error_code,
           NEW.last_error_message, NEW.updated_at, NEW.misplaced, NEW.acked_at, NEW.answers)
      IS DISTINCT FROM
      ROW (OLD.job_id, OLD.dimension, OLD.name, OLD.occurrence, OLD.kind, OLD.state, OLD.n, OLD.attempt, OLD.created_at,
           OLD.completed_at, OLD.result, OLD.error, OLD.notes, OLD.prev_hash, OLD.event_hash, OLD.origin_job_id,
           OLD.origin_dimension, OLD.semaphore, OLD.threshold, OLD.failed, OLD.step_index, OLD.step_type, OLD.service,
           OLD.attempt_no, OLD.lease_id, OLD.lease_expires_at, OLD.input_ref, OLD.workspace_ref, OLD.output_ref, OLD.payload,
           OLD.resolved_mode, OLD.lane, OLD.routing_key_used, OLD.decision_source, OLD.decision_reason, OLD.last_error_code,
           OLD.last_error_message, OLD.updated_at, OLD.misplaced, OLD.acked_at, OLD.answers))
EXECUTE FUNCTION refuse_change('FINAL: this step has ended and cannot change');

DROP TRIGGER steps_moves ON steps;
DROP TRIGGER steps_ledger ON steps;
-- rule: postgres-moves step steps.state.ledger
CREATE TRIGGER steps_moves BEFORE UPDATE ON steps FOR EACH ROW
WHEN (OLD.state <> NEW.state AND OLD.state || '>' || NEW.state <> ALL ('{
    PENDING>DISPATCHING,
    DISPATCHING>AWAITING_ACK,
    AWAITING_ACK>IN_PROGRESS,
    IN_PROGRESS>SUCCEEDED,
    IN_PROGRESS>FAILED_FINAL,
    IN_PROGRESS>FAILED_RETRY,
    AWAITING_ACK>FAILED_RETRY,
    FAILED_RETRY>DISPATCHING,
    DISPATCHING>FAILED_FINAL,
    AWAITING_ACK>FAILED_FINAL,
    PENDING>CANCELLED,
    DISPATCHING>CANCELLED,
    AWAITING_ACK>CANCELLED,
    IN_PROGRESS>CANCELLED,
    FAILED_RETRY>CANCELLED,
    DISPATCHING>IN_PROGRESS,
    AWAITING_ACK>SUCCEEDED,
    DISPATCHING>SUCCEEDED,
    DISPATCHING>FAILED_RETRY}'))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: the step lifecycle has no such move');

CREATE TRIGGER steps_ledger BEFORE UPDATE ON steps FOR EACH ROW
WHEN (NEW.ledger < OLD.ledger)
EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');
-- end rule
