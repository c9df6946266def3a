-- The life of a row, in the order in which a job meets the tables:
--
--   idempotency  a reservation makes many submissions of one content one job
--   jobs         one submission; it also carries its start message and its semaphore
--   attempts     a worker claims the job: one leased try, the fence of everything below
--   steps        what the workflow did, one row each; an inline step's row is its own event
--   messages     what arrives for a job (signal, timer, child, result), each with its own ledger
--   events       what became true, hash-chained per job; only ever appended
--   outbox       directives on their way to remote workers
--   closings     not a table: the one statement that moves a semaphore and marks its message
--   child_ends   not a table: the one statement by which a child that has ended is counted in its group
--   stale_reports  reports that came too late: refused, counted, kept for people
--
-- Instants are milliseconds since 1970, except a lease's end: that is on the clock `lease_epoch` names.

CREATE TABLE idempotency (
  tenant_id     TEXT NOT NULL,
  scope         TEXT NOT NULL CHECK (scope IN ('key', 'content')),
  value         TEXT NOT NULL,
  job_id        TEXT NOT NULL,
  content_hash  TEXT NOT NULL,
  canon_version INTEGER NOT NULL,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, scope, value)
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  job_id             TEXT NOT NULL PRIMARY KEY,
  state              TEXT NOT NULL,
  attempt            INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
  ready_at           INTEGER,
  hold               TEXT CHECK (hold = 'PAUSED' OR hold = 'IN_DOUBT' OR hold = 'MISMATCH' OR hold = 'RESTORED' OR hold = 'SUSPEND_SWALLOWED'),
  queue              TEXT NOT NULL DEFAULT 'default',
  priority           INTEGER NOT NULL DEFAULT 5 CHECK (priority BETWEEN 0 AND 9),
  semaphore          INTEGER NOT NULL DEFAULT 1 CHECK (semaphore >= 0),
  start_ledger       INTEGER NOT NULL DEFAULT 0,
  start_redeliveries INTEGER NOT NULL DEFAULT 0,
  start_acked_at     INTEGER,
  head_n             INTEGER NOT NULL DEFAULT 0,
  head_hash          BLOB NOT NULL DEFAULT x'',
  rev                INTEGER NOT NULL DEFAULT 1,
  updated_at         INTEGER NOT NULL,
  completed_at       INTEGER,
  kind               TEXT NOT NULL DEFAULT 'workflow' CHECK (kind = 'workflow' OR kind = 'protocol' OR kind = 'map'),
  handler            TEXT NOT NULL,
  version            TEXT NOT NULL DEFAULT '',
  dimension          INTEGER NOT NULL DEFAULT 0,
  deadline_at        INTEGER,
  cancel_at          INTEGER,
  created_at         INTEGER NOT NULL,
  payload            TEXT NOT NULL,
  options            TEXT NOT NULL DEFAULT '{}',
  result             TEXT,
  error              TEXT,
  error_code         TEXT,
  error_message      TEXT,
  hold_reason        TEXT,
  tenant_id          TEXT NOT NULL DEFAULT 'default',
  request_type       TEXT,
  protocol_id        TEXT,
  mode               TEXT,
  doc_id             TEXT,
  input_ref          TEXT,
  output_ref         TEXT,
  schema_version     TEXT,
  idempotency_key    TEXT,
  idempotency_hash   TEXT,
  canon_version      INTEGER,
  current_step_id    TEXT,
  current_step_index INTEGER,
  attempts_total     INTEGER NOT NULL DEFAULT 0,
  correlation_id     TEXT,
  traceparent        TEXT,
  tags               TEXT,
  parent_job_id      TEXT,
  parent_step        TEXT,
  detached           INTEGER NOT NULL DEFAULT 0 CHECK (detached IN (0, 1)),
  retry_of           TEXT,
  retried_as         TEXT,
  pruned_at          INTEGER,
  -- rule: states job state
  CHECK (state = 'QUEUED' OR state = 'DISPATCHING' OR state = 'IN_PROGRESS' OR state = 'CANCELLING' OR state = 'SUCCEEDED' OR state = 'FAILED_FINAL' OR state = 'CANCELLED'),
  -- end rule
  -- rule: final job state
  CHECK ((state = 'SUCCEEDED' OR state = 'FAILED_FINAL' OR state = 'CANCELLED') = (completed_at IS NOT NULL)),
  -- end rule
  -- rule: digits GUID start_ledger
  CHECK (start_ledger BETWEEN 0 AND 999999999999999
         AND start_ledger / 1000000000000 % 1000 <= 0
         AND start_ledger / 100000000000 % 10 <= 1
         AND start_ledger / 10000000000 % 10 <= 1
         AND start_ledger / 1000000000 % 10 <= 1
         AND start_ledger / 100000000 % 10 <= 1),
  -- end rule
  CHECK (pruned_at IS NULL OR completed_at IS NOT NULL),
  CHECK (ready_at IS NULL OR completed_at IS NULL)
) STRICT;

-- Only what may be claimed is in this index, so a claim costs the same whatever has piled up elsewhere.
CREATE INDEX jobs_to_claim ON jobs (queue, priority, ready_at) WHERE ready_at IS NOT NULL AND hold IS NULL;
CREATE INDEX jobs_by_deadline ON jobs (deadline_at) WHERE deadline_at IS NOT NULL AND completed_at IS NULL;
CREATE INDEX jobs_of_parent ON jobs (parent_job_id, parent_step) WHERE parent_job_id IS NOT NULL;
CREATE INDEX jobs_open_children ON jobs (parent_job_id)
  WHERE parent_job_id IS NOT NULL AND completed_at IS NULL AND detached = 0;
CREATE INDEX jobs_to_cancel ON jobs (cancel_at) WHERE state = 'CANCELLING';
CREATE INDEX jobs_dead ON jobs (tenant_id, job_id) WHERE state = 'FAILED_FINAL' AND retried_as IS NULL;

-- The tags of a job again, to find it by. They follow from `jobs.tags` and go with the job.
CREATE TABLE job_tags (
  tag    TEXT NOT NULL,
  job_id TEXT NOT NULL,
  PRIMARY KEY (tag, job_id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER jobs_tagged AFTER INSERT ON jobs WHEN NEW.tags IS NOT NULL
BEGIN INSERT OR IGNORE INTO job_tags (tag, job_id) SELECT tag.value, NEW.job_id FROM json_each(NEW.tags) AS tag; END;

CREATE TRIGGER jobs_untagged AFTER DELETE ON jobs WHEN OLD.tags IS NOT NULL
BEGIN DELETE FROM job_tags WHERE job_id = OLD.job_id AND tag IN (SELECT tag.value FROM json_each(OLD.tags) AS tag); END;

CREATE TABLE attempts (
  job_id           TEXT NOT NULL,
  unit             TEXT NOT NULL DEFAULT '',
  attempt          INTEGER NOT NULL CHECK (attempt >= 1),
  status           TEXT NOT NULL,
  lease_id         TEXT NOT NULL,
  lease_epoch      TEXT NOT NULL,
  lease_expires_at INTEGER NOT NULL,
  lease_owner      TEXT NOT NULL,
  reason           TEXT,
  charged          INTEGER NOT NULL DEFAULT 0 CHECK (charged IN (0, 1)),
  guid             TEXT NOT NULL DEFAULT 'start',
  started_at       INTEGER,
  finished_at      INTEGER,
  exec_id          TEXT GENERATED ALWAYS AS (job_id || ':' || unit || ':' || attempt) VIRTUAL,
  -- rule: states attempt status
  CHECK (status = 'LEASED' OR status = 'IN_PROGRESS' OR status = 'COMMITTED' OR status = 'DONE' OR status = 'ABORTED'),
  -- end rule
  CHECK ((status = 'ABORTED') = (reason IS NOT NULL)),
  PRIMARY KEY (job_id, unit, attempt)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX attempts_one_live ON attempts (job_id, unit) WHERE status IN ('LEASED', 'IN_PROGRESS');
CREATE UNIQUE INDEX attempts_one_committed ON attempts (job_id, unit) WHERE status IN ('COMMITTED', 'DONE');

-- Steps and events are appended by many jobs at once: in the order of writing a flush touches few pages.
CREATE TABLE steps (
  job_id             TEXT NOT NULL,
  dimension          INTEGER NOT NULL DEFAULT 0,
  name               TEXT NOT NULL,
  occurrence         INTEGER NOT NULL DEFAULT 1 CHECK (occurrence >= 1),
  kind               TEXT NOT NULL
    CHECK (kind = 'step' OR kind = 'tx' OR kind = 'effect' OR kind = 'remote' OR kind = 'wait' OR kind = 'sleep' OR kind = 'group' OR kind = 'protocol'),
  state              TEXT NOT NULL,
  ledger             INTEGER NOT NULL DEFAULT 0,
  n                  INTEGER,
  attempt            INTEGER,
  created_at         INTEGER NOT NULL,
  completed_at       INTEGER,
  result             TEXT,
  error              TEXT,
  notes              TEXT,
  prev_hash          BLOB,
  event_hash         BLOB,
  origin_job_id      TEXT,
  origin_dimension   INTEGER,
  semaphore          INTEGER CHECK (semaphore >= 0),
  threshold          INTEGER,
  failed             INTEGER,
  step_id            TEXT GENERATED ALWAYS AS (name || '#' || occurrence) VIRTUAL,
  step_index         INTEGER,
  step_type          TEXT,
  service            TEXT,
  attempt_no         INTEGER,
  lease_id           TEXT,
  lease_expires_at   INTEGER,
  input_ref          TEXT,
  workspace_ref      TEXT,
  output_ref         TEXT,
  payload            TEXT,
  resolved_mode      TEXT,
  lane               TEXT,
  routing_key_used   TEXT,
  decision_source    TEXT,
  decision_reason    TEXT,
  last_error_code    TEXT,
  last_error_message TEXT,
  updated_at         INTEGER,
  rev                INTEGER NOT NULL DEFAULT 1,
  -- rule: states step state
  CHECK (state = 'PENDING' OR state = 'DISPATCHING' OR state = 'AWAITING_ACK' OR state = 'IN_PROGRESS' OR state = 'FAILED_RETRY' OR state = 'SUCCEEDED' OR state = 'FAILED_FINAL' OR state = 'CANCELLED'),
  -- end rule
  -- rule: final step state
  CHECK ((state = 'SUCCEEDED' OR state = 'FAILED_FINAL' OR state = 'CANCELLED') = (completed_at IS NOT NULL)),
  -- end rule
  -- rule: digits activity ledger
  CHECK (ledger BETWEEN 0 AND 999999999999999
         AND ledger / 100000000000 % 10 <= 1
         AND ledger / 10000000000 % 10 <= 1
         AND ledger / 1000000000 % 10 <= 1
         AND ledger / 100000000 % 10 <= 1),
  -- end rule
  -- A row that is its own event is written once, already ended.
  CHECK (n IS NULL OR state IN ('SUCCEEDED', 'FAILED_FINAL')),
  -- A copy in a fork knows the row that was written when it happened.
  CHECK ((origin_job_id IS NULL) = (origin_dimension IS NULL)),
  PRIMARY KEY (job_id, dimension, name, occurrence)
) STRICT;

CREATE UNIQUE INDEX steps_one_in_progress ON steps (job_id) WHERE kind = 'protocol' AND state = 'IN_PROGRESS';
-- Whose records the forks of a job have: what retention must ask before it removes one.
CREATE INDEX steps_copied ON steps (origin_job_id) WHERE origin_job_id IS NOT NULL;

-- Attempts that are charged to the budget: those since the job last recorded anything, or came to a wait or a turn.
CREATE VIEW futile_attempts (job_id, attempt, reason) AS
SELECT a.job_id, a.attempt, a.reason
  FROM attempts AS a
 WHERE a.unit = '' AND a.charged = 1
   AND a.attempt >= coalesce((SELECT max(s.attempt) FROM steps AS s WHERE s.job_id = a.job_id), 0)
   AND a.attempt > coalesce((SELECT max(w.attempt)
                               FROM attempts AS w
                              WHERE w.job_id = a.job_id AND w.unit = '' AND w.reason = 'SUSPENDED'), 0);

CREATE TABLE messages (
  guid         TEXT NOT NULL PRIMARY KEY,
  job_id       TEXT NOT NULL,
  dimension    INTEGER NOT NULL DEFAULT 0,
  name         TEXT NOT NULL,
  occurrence   INTEGER,
  kind         TEXT NOT NULL CHECK (kind = 'start' OR kind = 'signal' OR kind = 'timer' OR kind = 'child' OR kind = 'result' OR kind = 'resume'),
  payload      TEXT,
  due_at       INTEGER,
  ledger       INTEGER NOT NULL DEFAULT 0,
  redeliveries INTEGER NOT NULL DEFAULT 0,
  created_at   INTEGER NOT NULL,
  arrived      INTEGER NOT NULL DEFAULT 0,
  acked_at     INTEGER,
  -- rule: digits GUID ledger
  CHECK (ledger BETWEEN 0 AND 999999999999999
         AND ledger / 1000000000000 % 1000 <= 0
         AND ledger / 100000000000 % 10 <= 1
         AND ledger / 10000000000 % 10 <= 1
         AND ledger / 1000000000 % 10 <= 1
         AND ledger / 100000000 % 10 <= 1),
  -- end rule
  CHECK (redeliveries >= 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX messages_inbox ON messages (job_id, arrived) WHERE acked_at IS NULL;
CREATE INDEX messages_of_job ON messages (job_id);
CREATE INDEX messages_due ON messages (due_at) WHERE acked_at IS NULL AND due_at IS NOT NULL;

-- A job as people and programs look at it, and what it claims about its own history. An open activity is the start
-- message until its step 2 is marked, every step that has not ended, and the message that drives the job once it is taken.

CREATE VIEW job_rows AS
SELECT job_id, state, handler, version, queue, priority, tenant_id, attempt, ready_at, hold, hold_reason, semaphore,
       start_ledger, created_at, updated_at, completed_at, deadline_at, payload, options, result, error, error_code,
       error_message, idempotency_key, idempotency_hash, tags, retry_of, retried_as
  FROM jobs;

CREATE VIEW job_books AS
SELECT job_id, state, attempt, hold, hold_reason, semaphore, start_ledger, head_n, head_hash, rev, options,
       (start_ledger / 1000000000 % 10 = 0)
       + (SELECT count(*)
            FROM steps
           WHERE steps.job_id = jobs.job_id AND steps.completed_at IS NULL AND steps.kind <> 'protocol')
       + (SELECT count(*)
            FROM messages
           WHERE messages.job_id = jobs.job_id AND messages.acked_at IS NULL AND messages.kind <> 'child'
             AND (messages.ledger / 10000000000 % 10 = 1 OR (messages.kind = 'resume' AND messages.name = 'again'))) AS open_activities
  FROM jobs;

CREATE TABLE events (
  job_id     TEXT NOT NULL,
  n          INTEGER NOT NULL CHECK (n >= 1),
  type       TEXT NOT NULL,
  at         INTEGER NOT NULL,
  attempt    INTEGER NOT NULL,
  payload    TEXT NOT NULL,
  prev_hash  BLOB NOT NULL,
  event_hash BLOB NOT NULL,
  PRIMARY KEY (job_id, n)
) STRICT;

CREATE TABLE outbox (
  outbox_id        TEXT NOT NULL PRIMARY KEY,
  tenant_id        TEXT NOT NULL,
  job_id           TEXT NOT NULL,
  step_id          TEXT NOT NULL,
  attempt_no       INTEGER NOT NULL,
  lease_id         TEXT NOT NULL,
  state            TEXT NOT NULL,
  topic            TEXT NOT NULL,
  partition        TEXT,
  payload          TEXT NOT NULL,
  resolved_mode    TEXT,
  lane             TEXT,
  routing_key_used TEXT,
  decision_source  TEXT,
  decision_reason  TEXT,
  tries            INTEGER NOT NULL DEFAULT 0,
  next_try_at      INTEGER,
  created_at       INTEGER NOT NULL,
  sent_at          INTEGER,
  updated_at       INTEGER NOT NULL,
  rev              INTEGER NOT NULL DEFAULT 1,
  -- rule: states outbox state
  CHECK (state = 'PENDING' OR state = 'SENT' OR state = 'FAILED_FINAL'),
  -- end rule
  CHECK ((state = 'SENT') = (sent_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_of_job ON outbox (job_id);
CREATE INDEX outbox_to_publish ON outbox (next_try_at) WHERE state = 'PENDING';

CREATE TABLE stale_reports (
  id       INTEGER PRIMARY KEY,
  at       INTEGER NOT NULL,
  job_id   TEXT NOT NULL,
  attempt  INTEGER NOT NULL,
  lease_id TEXT NOT NULL,
  report   TEXT NOT NULL
) STRICT;

-- Illegal changes are refused here too, even for an UPDATE by hand: what has ended stays as it ended, states move as
-- their lifecycle lists, ledgers only grow. A final job may still learn which job took its place, and be pruned.

-- rule: sqlite-births job jobs.state
CREATE TRIGGER jobs_births BEFORE INSERT ON jobs
WHEN NOT (NEW.state = 'QUEUED' OR NEW.state = 'IN_PROGRESS')
BEGIN SELECT RAISE(FAIL, 'ILLEGAL_TRANSITION: no job begins in this state'); END;
-- end rule

-- rule: sqlite-births outbox outbox.state
CREATE TRIGGER outbox_births BEFORE INSERT ON outbox
WHEN NOT (NEW.state = 'PENDING')
BEGIN SELECT RAISE(FAIL, 'ILLEGAL_TRANSITION: no outbox begins in this state'); END;
-- end rule

CREATE TRIGGER jobs_guard AFTER UPDATE OF
  job_id, state, attempt, ready_at, hold, semaphore, start_ledger, start_redeliveries, start_acked_at, head_n, head_hash,
  completed_at, kind, handler, version, dimension, created_at, payload, options, result, error, error_code, error_message,
  tenant_id, idempotency_key, idempotency_hash, parent_job_id, parent_step, retry_of
ON jobs
-- rule: sqlite-guard job jobs.state.start_ledger
WHEN OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED'
  OR NEW.start_ledger < OLD.start_ledger
  OR (OLD.state <> NEW.state AND NOT (
          OLD.state = 'QUEUED' AND (NEW.state = 'DISPATCHING' OR NEW.state = 'CANCELLING' OR NEW.state = 'IN_PROGRESS' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'DISPATCHING' AND (NEW.state = 'IN_PROGRESS' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLING' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'IN_PROGRESS' AND (NEW.state = 'IN_PROGRESS' OR NEW.state = 'SUCCEEDED' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLING' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'CANCELLING' AND (NEW.state = 'CANCELLED')))
BEGIN
  SELECT RAISE(ABORT, 'FINAL: this job has ended and cannot change') WHERE OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED';
  SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the job lifecycle has no such move')
   WHERE OLD.state <> NEW.state;
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases');
END;
-- end rule

CREATE TRIGGER attempts_guard AFTER UPDATE ON attempts
-- rule: sqlite-guard attempt attempts.status
WHEN OLD.status = 'DONE' OR OLD.status = 'ABORTED'
  OR (OLD.status <> NEW.status AND NOT (
          OLD.status = 'LEASED' AND (NEW.status = 'IN_PROGRESS' OR NEW.status = 'ABORTED')
       OR OLD.status = 'IN_PROGRESS' AND (NEW.status = 'COMMITTED' OR NEW.status = 'ABORTED' OR NEW.status = 'DONE')
       OR OLD.status = 'COMMITTED' AND (NEW.status = 'DONE')))
BEGIN
  SELECT RAISE(ABORT, 'FINAL: this attempt has ended and cannot change') WHERE OLD.status = 'DONE' OR OLD.status = 'ABORTED';
  SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the attempt lifecycle has no such move')
   WHERE OLD.status <> NEW.status;
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases');
END;
-- end rule

CREATE TRIGGER steps_guard AFTER UPDATE ON steps
-- rule: sqlite-guard step steps.state.ledger
WHEN OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED'
  OR NEW.ledger < OLD.ledger
  OR (OLD.state <> NEW.state AND NOT (
          OLD.state = 'PENDING' AND (NEW.state = 'DISPATCHING' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'DISPATCHING' AND (NEW.state = 'AWAITING_ACK' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLED' OR NEW.state = 'IN_PROGRESS')
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

CREATE TRIGGER outbox_guard AFTER UPDATE ON outbox
-- rule: sqlite-guard outbox outbox.state
WHEN OLD.state = 'SENT' OR OLD.state = 'FAILED_FINAL'
  OR (OLD.state <> NEW.state AND NOT (
          OLD.state = 'PENDING' AND (NEW.state = 'SENT' OR NEW.state = 'FAILED_FINAL')))
BEGIN
  SELECT RAISE(ABORT, 'FINAL: this outbox has ended and cannot change') WHERE OLD.state = 'SENT' OR OLD.state = 'FAILED_FINAL';
  SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the outbox lifecycle has no such move')
   WHERE OLD.state <> NEW.state;
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases');
END;
-- end rule

CREATE TRIGGER messages_guard AFTER UPDATE OF ledger ON messages WHEN NEW.ledger < OLD.ledger
BEGIN SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases'); END;

CREATE TRIGGER events_guard AFTER UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'FINAL: an event is a fact and cannot change'); END;

-- Retention marks a final job as pruned, then removes its books, children first. Nothing else is ever deleted, and so
-- nothing can be replaced.

CREATE TRIGGER jobs_delete BEFORE DELETE ON jobs WHEN OLD.pruned_at IS NULL
BEGIN SELECT RAISE(ABORT, 'DELETE: this job is not pruned'); END;

CREATE TRIGGER attempts_delete BEFORE DELETE ON attempts
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id)
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this attempt is not pruned'); END;

CREATE TRIGGER steps_delete BEFORE DELETE ON steps
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id)
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this step is not pruned'); END;

CREATE TRIGGER messages_delete BEFORE DELETE ON messages
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id)
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this message is not pruned'); END;

CREATE TRIGGER events_delete BEFORE DELETE ON events
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id)
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this event is not pruned'); END;

-- Step 2 of a leg-2 message as one statement: an INSERT here moves the semaphore of a group (or of a whole job, when
-- `step` is empty), marks the message, and writes the closer digit, all or nothing. The INSERT's own SELECT computes
-- `hit` from the semaphore before the move. The message is asked first: a second delivery is harmless, an underflow is not.

CREATE VIEW closings (job_id, dimension, name, occurrence, guid, delta, threshold, hit) AS
SELECT '', 0, '', 0, '', 0, 0, 0 WHERE 0;

CREATE TRIGGER closings_of_a_group INSTEAD OF INSERT ON closings WHEN NEW.name <> ''
BEGIN
  UPDATE messages
     SET ledger = ledger + 1000000000 + 100000000000 * NEW.hit
   WHERE guid = NEW.guid AND job_id = NEW.job_id AND acked_at IS NULL
     AND ledger / 10000000000 % 10 = 1 AND ledger / 1000000000 % 10 = 0;
  SELECT RAISE(ABORT, 'MARKER: step 2 of this message is done, or its step 1 is not') WHERE changes() <> 1;
  UPDATE steps
     SET semaphore = semaphore + NEW.delta,
         ledger = ledger + 1000000000 * (ledger / 1000000000 % 10 = 0),
         rev = rev + 1
   WHERE job_id = NEW.job_id AND dimension = NEW.dimension AND name = NEW.name AND occurrence = NEW.occurrence
     AND kind = 'group' AND state = 'IN_PROGRESS';
  SELECT RAISE(ABORT, 'MARKER: this group is not open') WHERE changes() <> 1;
END;

CREATE TRIGGER closings_of_a_job INSTEAD OF INSERT ON closings WHEN NEW.name = ''
BEGIN
  UPDATE messages
     SET ledger = ledger + 1000000000 + 100000000000 * NEW.hit
   WHERE guid = NEW.guid AND job_id = NEW.job_id AND acked_at IS NULL
     AND ledger / 10000000000 % 10 = 1 AND ledger / 1000000000 % 10 = 0;
  SELECT RAISE(ABORT, 'MARKER: step 2 of this message is done, or its step 1 is not') WHERE changes() <> 1;
  UPDATE jobs SET semaphore = semaphore + NEW.delta, rev = rev + 1 WHERE job_id = NEW.job_id AND completed_at IS NULL;
  SELECT RAISE(ABORT, 'MARKER: this job has ended') WHERE changes() <> 1;
END;

-- A child that has ended, as one statement: an INSERT here enters the group, keeps the outcome as a message with all its
-- digits, and moves the semaphore, all or nothing. The INSERT's own SELECT computes `entry` and `hit` from the group as
-- it was, so of many children in one transaction each sees what the one before it left. Two endings of one child, or
-- more endings than children, are refused.

CREATE VIEW child_ends (guid, job_id, dimension, name, occurrence, state, failed, at, entry, hit, mode) AS
SELECT '', '', 0, '', 0, '', 0, 0, 0, 0, '' WHERE 0;

CREATE TRIGGER child_ends_in_a_group INSTEAD OF INSERT ON child_ends
BEGIN
  INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, payload, created_at, acked_at, ledger)
  VALUES (NEW.guid, NEW.job_id, NEW.dimension, NEW.name, NEW.occurrence, 'child', NEW.state, NEW.at, NEW.at,
          NEW.entry + 11000000000 + 100100000000 * NEW.hit);
  UPDATE steps
     SET ledger = ledger + 1 + 10000000000 * (ledger / 10000000000 % 10 = 0) + 1000000000 * (ledger / 1000000000 % 10 = 0),
         semaphore = semaphore - 1,
         failed = failed + NEW.failed,
         rev = rev + 1
   WHERE job_id = NEW.job_id AND dimension = NEW.dimension AND name = NEW.name AND occurrence = NEW.occurrence
     AND kind = 'group' AND state = 'IN_PROGRESS';
  SELECT RAISE(ABORT, 'MARKER: this group is not open') WHERE changes() <> 1;
END;
