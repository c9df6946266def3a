-- The rules that a remote step of a workflow was declared with are kept in its row, as those of a protocol job in that of the job.

ALTER TABLE steps ADD COLUMN options TEXT;

-- What never went, for people: dead letters, and what was withdrawn.
CREATE INDEX outbox_never_sent ON outbox (outbox_id) WHERE state = 'FAILED_FINAL';

DROP TRIGGER steps_guard;
CREATE TRIGGER steps_guard AFTER UPDATE OF
  job_id, dimension, name, occurrence, kind, state, n, attempt, created_at, completed_at, result, error, notes, prev_hash,
  event_hash, origin_job_id, origin_dimension, semaphore, threshold, failed, step_index, step_type, service, attempt_no,
  lease_id, lease_expires_at, input_ref, workspace_ref, output_ref, payload, resolved_mode, lane, routing_key_used,
  decision_source, decision_reason, last_error_code, last_error_message, updated_at, misplaced, acked_at, answers, options
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
