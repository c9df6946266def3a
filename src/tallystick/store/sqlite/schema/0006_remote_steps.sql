-- Remote steps: what their workers have answered, the service a directive is for and how it travels. The lifecycles list the moves
-- that reports make which overtake each other, and a protocol job is born with its first directive.

ALTER TABLE steps ADD COLUMN acked_at INTEGER;
ALTER TABLE steps ADD COLUMN answers TEXT;
ALTER TABLE outbox ADD COLUMN service TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN via TEXT NOT NULL DEFAULT 'pull';
ALTER TABLE outbox ADD COLUMN taken_by TEXT;
ALTER TABLE outbox ADD COLUMN reason TEXT;

CREATE INDEX steps_due ON steps (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX outbox_of_service ON outbox (service, next_try_at) WHERE state = 'PENDING' AND via = 'pull';
CREATE INDEX outbox_taken ON outbox (taken_by, sent_at) WHERE taken_by IS NOT NULL;

DROP TRIGGER jobs_births;
-- rule: sqlite-births job jobs.state
CREATE TRIGGER jobs_births BEFORE INSERT ON jobs
WHEN NOT (NEW.state = 'QUEUED' OR NEW.state = 'IN_PROGRESS' OR NEW.state = 'DISPATCHING')
BEGIN SELECT RAISE(FAIL, 'ILLEGAL_TRANSITION: no job begins in this state'); END;
-- end rule

DROP TRIGGER jobs_guard;
CREATE TRIGGER jobs_guard AFTER UPDATE OF
  job_id, state, attempt, ready_at, hold, semaphore, root_ledger, ledger_form, start_ledger, start_redeliveries,
  start_acked_at, head_n, head_hash, completed_at, kind, handler, version, dimension, created_at, payload, options, result,
  error, error_code, error_message, tenant_id, idempotency_key, idempotency_hash, parent_job_id, parent_step, retry_of
ON jobs
-- rule: sqlite-guard job jobs.state.start_ledger.root_ledger
WHEN OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED'
  OR NEW.start_ledger < OLD.start_ledger
  OR NEW.root_ledger < OLD.root_ledger
  OR (OLD.state <> NEW.state AND NOT (
          OLD.state = 'QUEUED' AND (NEW.state = 'DISPATCHING' OR NEW.state = 'CANCELLING' OR NEW.state = 'IN_PROGRESS' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'DISPATCHING' AND (NEW.state = 'IN_PROGRESS' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLING' OR NEW.state = 'SUCCEEDED' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'IN_PROGRESS' AND (NEW.state = 'IN_PROGRESS' OR NEW.state = 'SUCCEEDED' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLING' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'CANCELLING' AND (NEW.state = 'CANCELLED')))
BEGIN
  SELECT RAISE(ABORT, 'FINAL: this job has ended and cannot change') WHERE OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED';
  SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the job lifecycle has no such move')
   WHERE OLD.state <> NEW.state;
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases');
END;
-- end rule

DROP TRIGGER steps_guard;
CREATE TRIGGER steps_guard AFTER UPDATE OF
  job_id, dimension, name, occurrence, kind, state, n, attempt, created_at, completed_at, result, error, notes, prev_hash,
  event_hash, origin_job_id, origin_dimension, semaphore, threshold, failed, step_index, step_type, service, attempt_no,
  lease_id, lease_expires_at, input_ref, workspace_ref, output_ref, payload, resolved_mode, lane, routing_key_used,
  decision_source, decision_reason, last_error_code, last_error_message, updated_at, misplaced, acked_at, answers
ON steps
-- rule: sqlite-guard step steps.state
WHEN OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED'
  OR (OLD.state <> NEW.state AND NOT (
          OLD.state = 'PENDING' AND (NEW.state = 'DISPATCHING' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'DISPATCHING' AND (NEW.state = 'AWAITING_ACK' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLED' OR NEW.state = 'IN_PROGRESS' OR NEW.state = 'SUCCEEDED' OR NEW.state = 'FAILED_RETRY')
       OR OLD.state = 'AWAITING_ACK' AND (NEW.state = 'IN_PROGRESS' OR NEW.state = 'FAILED_RETRY' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLED' OR NEW.state = 'SUCCEEDED')
       OR OLD.state = 'IN_PROGRESS' AND (NEW.state = 'SUCCEEDED' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'FAILED_RETRY' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'FAILED_RETRY' AND (NEW.state = 'DISPATCHING' OR NEW.state = 'CANCELLED')))
BEGIN
  SELECT RAISE(ABORT, 'FINAL: this step has ended and cannot change') WHERE OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED';
  SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the step lifecycle has no such move')
   WHERE OLD.state <> NEW.state;
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases');
END;
-- end rule
