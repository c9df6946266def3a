-- The digits of a job's own activity, its root, stand beside those of its start message. Digits are made by the rules and
-- come as parameters; what is written here confirms them. `ledger_form` says how a job's digits are kept: 0 for jobs that
-- were born before this.

ALTER TABLE jobs ADD COLUMN root_ledger INTEGER NOT NULL DEFAULT 0
  -- rule: column-digits activity root_ledger
  CHECK (root_ledger BETWEEN 0 AND 999999999999999
         AND root_ledger / 100000000000 % 10 <= 1
         AND root_ledger / 10000000000 % 10 <= 1
         AND root_ledger / 1000000000 % 10 <= 1
         AND root_ledger / 100000000 % 10 <= 1)
  -- end rule
;
ALTER TABLE jobs ADD COLUMN ledger_form INTEGER NOT NULL DEFAULT 0 CHECK (ledger_form = 0 OR ledger_form = 1);

-- A job may be held because the database refused what it wrote. SQLite changes a CHECK only in the text of its table.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
   SET sql = replace(sql, 'OR hold = ''SUSPEND_SWALLOWED'')', 'OR hold = ''SUSPEND_SWALLOWED'' OR hold = ''REFUSED'')')
 WHERE type = 'table' AND name = 'jobs';
PRAGMA writable_schema = RESET;

DROP TRIGGER jobs_guard;

-- Leg 1 of a job is its submission. Its entries are those that its start message has counted, and its marks those of that.
UPDATE jobs
   SET root_ledger = 1100000000000 + start_ledger % 100000000
         + 11000000000 * (start_ledger / 1000000000 % 10) + 100000000 * (start_ledger / 100000000 % 10);

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

-- The state of a wait or a group ends with step 1 of its message; after that its row may learn steps 2 and 3, each once.
DROP TRIGGER steps_guard;
CREATE TRIGGER steps_guard AFTER UPDATE OF
  job_id, dimension, name, occurrence, kind, state, n, attempt, created_at, completed_at, result, error, notes, prev_hash,
  event_hash, origin_job_id, origin_dimension, semaphore, threshold, failed, step_index, step_type, service, attempt_no,
  lease_id, lease_expires_at, input_ref, workspace_ref, output_ref, payload, resolved_mode, lane, routing_key_used,
  decision_source, decision_reason, last_error_code, last_error_message, updated_at, misplaced
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

CREATE TRIGGER steps_learn AFTER UPDATE OF ledger, rev ON steps
-- rule: sqlite-learns step steps.state.ledger
WHEN NEW.ledger < OLD.ledger
  OR ((OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED') AND NOT (NEW.ledger - OLD.ledger = 1000000000 OR NEW.ledger - OLD.ledger = 100000000 OR NEW.ledger - OLD.ledger = 1100000000))
BEGIN
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases') WHERE NEW.ledger < OLD.ledger;
  SELECT RAISE(ABORT, 'FINAL: this step has ended and cannot change');
END;
-- end rule

-- An attempt is one at a job that is there, and begins before it ends.
-- rule: sqlite-births attempt attempts.status.jobs
CREATE TRIGGER attempts_births BEFORE INSERT ON attempts
WHEN NOT (NEW.status = 'LEASED' OR NEW.status = 'IN_PROGRESS' OR NEW.status = 'ABORTED' OR NEW.status = 'COMMITTED')
  OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.job_id = NEW.job_id)
BEGIN SELECT RAISE(FAIL, 'ILLEGAL_TRANSITION: no attempt begins in this state, or without its row in jobs'); END;
-- end rule

-- A directive goes with its job, as everything else does.
CREATE TRIGGER outbox_delete BEFORE DELETE ON outbox
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id)
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this directive is not pruned'); END;

-- While an attempt is committed and not done no other begins: the work is finished from there, never done again.
DROP INDEX attempts_one_live;
CREATE UNIQUE INDEX attempts_one_live ON attempts (job_id, unit) WHERE status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED');

-- Step 2 of a message as one statement: an INSERT here moves the semaphore of a job, marks the message and its activity,
-- and checks that the semaphore came to zero by this exactly if it was said to; all or nothing.
DROP VIEW closings;
DROP VIEW child_ends;

CREATE VIEW semaphore_moves (
  job_id, rev, delta, root_ledger, hit, guid, digits, guid_ledger, acked_at, dimension, name, occurrence, activity_rev,
  activity_ledger
) AS
SELECT '', 0, 0, 0, 0, '', 0, 0, 0, 0, '', 0, 0, 0 WHERE 0;

CREATE TRIGGER semaphore_moved INSTEAD OF INSERT ON semaphore_moves
BEGIN
  UPDATE messages
     SET ledger = NEW.guid_ledger, acked_at = NEW.acked_at, dimension = NEW.dimension, occurrence = NEW.occurrence
   WHERE guid = NEW.guid AND job_id = NEW.job_id AND ledger = NEW.digits AND acked_at IS NULL;
  SELECT RAISE(ABORT, 'MARKER: this message has other digits, or is acknowledged') WHERE changes() <> 1;
  UPDATE steps
     SET ledger = NEW.activity_ledger, rev = rev + 1
   WHERE NEW.activity_ledger IS NOT NULL AND job_id = NEW.job_id AND dimension = NEW.dimension AND name = NEW.name
     AND occurrence = NEW.occurrence AND rev = NEW.activity_rev;
  SELECT RAISE(ABORT, 'MARKER: this activity has moved') WHERE changes() <> (NEW.activity_ledger IS NOT NULL);
  UPDATE jobs
     SET semaphore = semaphore + NEW.delta, root_ledger = NEW.root_ledger, rev = rev + 1
   WHERE job_id = NEW.job_id AND rev = NEW.rev AND completed_at IS NULL AND (semaphore + NEW.delta = 0) = NEW.hit;
  SELECT RAISE(ABORT, 'MARKER: this job has moved, or its semaphore is another one') WHERE changes() <> 1;
END;

-- A child that has ended, as one statement: its message with all its digits, and the group that has counted it.
CREATE VIEW child_counts (
  job_id, dimension, name, occurrence, rev, ledger, failed, hit, guid, digits, guid_ledger, state, at
) AS
SELECT '', 0, '', 0, 0, 0, 0, 0, '', 0, 0, '', 0 WHERE 0;

CREATE TRIGGER child_counted INSTEAD OF INSERT ON child_counts
BEGIN
  INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, payload, created_at, acked_at, ledger)
  SELECT NEW.guid, NEW.job_id, NEW.dimension, NEW.name, NEW.occurrence, 'child', NEW.state, NEW.at, NEW.at, NEW.guid_ledger
   WHERE NEW.digits IS NULL;
  UPDATE messages
     SET ledger = NEW.guid_ledger, acked_at = NEW.at
   WHERE NEW.digits IS NOT NULL AND guid = NEW.guid AND job_id = NEW.job_id AND ledger = NEW.digits AND acked_at IS NULL;
  SELECT RAISE(ABORT, 'MARKER: this message has other digits, or is acknowledged') WHERE changes() <> (NEW.digits IS NOT NULL);
  UPDATE steps
     SET ledger = NEW.ledger, semaphore = semaphore - 1, failed = NEW.failed, rev = rev + 1
   WHERE job_id = NEW.job_id AND dimension = NEW.dimension AND name = NEW.name AND occurrence = NEW.occurrence
     AND rev = NEW.rev AND kind = 'group' AND state = 'IN_PROGRESS' AND (semaphore - 1 = threshold) = NEW.hit;
  SELECT RAISE(ABORT, 'MARKER: this group has moved, or its semaphore is another one') WHERE changes() <> 1;
END;

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
