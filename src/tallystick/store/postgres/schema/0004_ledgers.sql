-- The digits of a job's own activity, its root, stand beside those of its start message. Digits are made by the rules and
-- come as parameters; what is written here confirms them. `ledger_form` says how a job's digits are kept: 0 for jobs that
-- were born before this.

ALTER TABLE jobs ADD COLUMN root_ledger BIGINT NOT NULL DEFAULT 0
  -- rule: column-digits activity root_ledger
  CHECK (root_ledger BETWEEN 0 AND 999999999999999
         AND root_ledger / 100000000000 % 10 <= 1
         AND root_ledger / 10000000000 % 10 <= 1
         AND root_ledger / 1000000000 % 10 <= 1
         AND root_ledger / 100000000 % 10 <= 1)
  -- end rule
;
ALTER TABLE jobs ADD COLUMN ledger_form BIGINT NOT NULL DEFAULT 0 CHECK (ledger_form = 0 OR ledger_form = 1);

-- Leg 1 of a job is its submission. Its entries are those that its start message has counted, and its marks those of that.
ALTER TABLE jobs DISABLE TRIGGER USER;
UPDATE jobs
   SET root_ledger = 1100000000000 + start_ledger % 100000000
         + 11000000000 * (start_ledger / 1000000000 % 10) + 100000000 * (start_ledger / 100000000 % 10);
ALTER TABLE jobs ENABLE TRIGGER USER;

DROP TRIGGER jobs_guard ON jobs;
CREATE TRIGGER jobs_guard BEFORE UPDATE OF
  job_id, state, attempt, ready_at, hold, semaphore, root_ledger, ledger_form, start_ledger, start_redeliveries,
  start_acked_at, head_n, head_hash, completed_at, kind, handler, version, dimension, created_at, payload, options, result,
  error, error_code, error_message, tenant_id, idempotency_key, idempotency_hash, parent_job_id, parent_step, retry_of
ON jobs FOR EACH ROW WHEN (OLD.completed_at IS NOT NULL)
EXECUTE FUNCTION refuse_change('FINAL: this job has ended and cannot change');

CREATE TRIGGER jobs_root_ledger BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.root_ledger < OLD.root_ledger)
EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');

-- The state of a wait or a group ends with step 1 of its message; after that its row may learn steps 2 and 3, each once.
DROP TRIGGER steps_guard ON steps;
CREATE TRIGGER steps_guard BEFORE UPDATE ON steps FOR EACH ROW
WHEN (OLD.state = ANY ('{SUCCEEDED,FAILED_FINAL,CANCELLED}') AND
      ROW (NEW.job_id, NEW.dimension, NEW.name, NEW.occurrence, NEW.kind, NEW.state, NEW.n, NEW.attempt, NEW.created_at,
           NEW.completed_at, NEW.result, NEW.error, NEW.notes, NEW.prev_hash, NEW.event_hash, NEW.origin_job_id,
           NEW.origin_dimension, NEW.semaphore, NEW.threshold, NEW.failed, NEW.step_index, NEW.step_type, NEW.service,
           NEW.attempt_no, NEW.lease_id, NEW.lease_expires_at, NEW.input_ref, NEW.workspace_ref, NEW.output_ref, NEW.payload,
           NEW.resolved_mode, NEW.lane, NEW.routing_key_used, NEW.decision_source, NEW.decision_reason, NEW.last_error_code,
           NEW.last_error_message, NEW.updated_at, NEW.misplaced)
      IS DISTINCT FROM
      ROW (OLD.job_id, OLD.dimension, OLD.name, OLD.occurrence, OLD.kind, OLD.state, OLD.n, OLD.attempt, OLD.created_at,
           OLD.completed_at, OLD.result, OLD.error, OLD.notes, OLD.prev_hash, OLD.event_hash, OLD.origin_job_id,
           OLD.origin_dimension, OLD.semaphore, OLD.threshold, OLD.failed, OLD.step_index, OLD.step_type, OLD.service,
           OLD.attempt_no, OLD.lease_id, OLD.lease_expires_at, OLD.input_ref, OLD.workspace_ref, OLD.output_ref, OLD.payload,
           OLD.resolved_mode, OLD.lane, OLD.routing_key_used, OLD.decision_source, OLD.decision_reason, OLD.last_error_code,
           OLD.last_error_message, OLD.updated_at, OLD.misplaced))
EXECUTE FUNCTION refuse_change('FINAL: this step has ended and cannot change');

CREATE TRIGGER steps_learn BEFORE UPDATE ON steps FOR EACH ROW
-- rule: postgres-learns step steps.state.ledger
WHEN (OLD.state = ANY ('{SUCCEEDED,FAILED_FINAL,CANCELLED}') AND NOT (NEW.ledger - OLD.ledger = 1000000000 OR NEW.ledger - OLD.ledger = 100000000 OR NEW.ledger - OLD.ledger = 1100000000))
EXECUTE FUNCTION refuse_change('FINAL: this step has ended and cannot change');
-- end rule

-- What was planned under a lock and did not happen is a mistake of ours: nothing of it is written.
CREATE FUNCTION expect_rows(statement TEXT, changed BIGINT, planned BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  IF changed <> planned THEN
    RAISE EXCEPTION 'MARKER: % changed % rows of % that were planned', statement, changed, planned
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
END $$;

-- What a job claims about its own history, and what else there is to read of it: activities that have not ended, the
-- newest attempt that has written one, and whether it has activities or messages at all.
DROP VIEW job_books;
CREATE VIEW job_books AS
SELECT job_id, state, attempt, dimension, hold, hold_reason, semaphore, root_ledger, start_ledger, start_acked_at, cancel_at,
       error_code, ledger_form, head_n, head_hash, rev, options, canon_version,
       (SELECT count(*)
          FROM steps
         WHERE steps.job_id = jobs.job_id AND steps.completed_at IS NULL AND steps.kind <> 'protocol') AS open_waits,
       (SELECT coalesce(max(steps.attempt), 0) FROM steps WHERE steps.job_id = jobs.job_id) AS progress,
       EXISTS (SELECT 1
                 FROM steps
                WHERE steps.job_id = jobs.job_id AND steps.kind <> 'step' AND steps.kind <> 'tx')
       OR EXISTS (SELECT 1 FROM messages WHERE messages.job_id = jobs.job_id) AS has_waited
  FROM jobs;
