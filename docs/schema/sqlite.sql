-- The life of a row, in the order in which a job meets the tables:
--
--   idempotency  a reservation makes many submissions of one content one job
--   jobs         one submission; it also carries its start message and its semaphore
--   attempts     a worker claims the job: one leased try, the fence of everything below
--   steps        what the workflow did, one row each; an inline step's row is its own event
--   messages     what arrives for a job (signal, timer, child, result), each with its own ledger
--   events       what became true, hash-chained per job; only ever appended
--   outbox       directives on their way to remote workers
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
  -- The digits of a job's own activity, its root; how its digits are kept: 0 for jobs of files that were older than the root's.
  root_ledger        INTEGER NOT NULL DEFAULT 0,
  ledger_form        INTEGER NOT NULL DEFAULT 0 CHECK (ledger_form = 0 OR ledger_form = 1),
  CHECK (state = 'QUEUED' OR state = 'DISPATCHING' OR state = 'IN_PROGRESS' OR state = 'CANCELLING' OR state = 'SUCCEEDED' OR state = 'FAILED_FINAL' OR state = 'CANCELLED'),
  CHECK ((state = 'SUCCEEDED' OR state = 'FAILED_FINAL' OR state = 'CANCELLED') = (completed_at IS NOT NULL)),
  CHECK (start_ledger BETWEEN 0 AND 999999999999999
         AND start_ledger / 1000000000000 % 1000 <= 0
         AND start_ledger / 100000000000 % 10 <= 1
         AND start_ledger / 10000000000 % 10 <= 1
         AND start_ledger / 1000000000 % 10 <= 1
         AND start_ledger / 100000000 % 10 <= 1),
  CHECK (root_ledger BETWEEN 0 AND 999999999999999
         AND root_ledger / 100000000000 % 10 <= 1
         AND root_ledger / 10000000000 % 10 <= 1
         AND root_ledger / 1000000000 % 10 <= 1
         AND root_ledger / 100000000 % 10 <= 1),
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
  CHECK (status = 'LEASED' OR status = 'IN_PROGRESS' OR status = 'COMMITTED' OR status = 'DONE' OR status = 'ABORTED'),
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
  kind               TEXT NOT NULL CHECK (kind = 'step' OR kind = 'tx' OR kind = 'effect' OR kind = 'remote' OR kind = 'wait' OR kind = 'sleep' OR kind = 'group' OR kind = 'protocol'),
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
  -- Of steps that stood at one place in an older file, those behind the first are left out of the key; `doctor` tells.
  misplaced          INTEGER CHECK (misplaced = 1),
  CHECK (state = 'PENDING' OR state = 'DISPATCHING' OR state = 'AWAITING_ACK' OR state = 'IN_PROGRESS' OR state = 'FAILED_RETRY' OR state = 'SUCCEEDED' OR state = 'FAILED_FINAL' OR state = 'CANCELLED'),
  CHECK ((state = 'SUCCEEDED' OR state = 'FAILED_FINAL' OR state = 'CANCELLED') = (completed_at IS NOT NULL)),
  CHECK (ledger BETWEEN 0 AND 999999999999999
         AND ledger / 100000000000 % 10 <= 1
         AND ledger / 10000000000 % 10 <= 1
         AND ledger / 1000000000 % 10 <= 1
         AND ledger / 100000000 % 10 <= 1),
  -- A row that is its own event is written once, already ended.
  CHECK (n IS NULL OR state IN ('SUCCEEDED', 'FAILED_FINAL')),
  -- A copy in a fork knows the row that was written when it happened.
  CHECK ((origin_job_id IS NULL) = (origin_dimension IS NULL)),
  PRIMARY KEY (job_id, dimension, name, occurrence)
) STRICT;

CREATE UNIQUE INDEX steps_one_in_progress ON steps (job_id) WHERE kind = 'protocol' AND state = 'IN_PROGRESS';
-- Whose records the forks of a job have: what retention must ask before it removes one.
CREATE INDEX steps_copied ON steps (origin_job_id) WHERE origin_job_id IS NOT NULL;
-- A place in a job's chain is taken once, be it by a step or by an event: a key on each table, and a guard below.
CREATE UNIQUE INDEX steps_places ON steps (job_id, n) WHERE n IS NOT NULL AND misplaced IS NULL;
-- What is open, apart from all that is over: whoever waits, wakes, claims or turns looks at the former.
CREATE INDEX steps_open ON steps (job_id, name) WHERE completed_at IS NULL;

-- Attempts that are charged to the budget: those since the job last recorded anything, or came to a wait or a turn. Found
-- from the newest attempt backwards; steps of earlier turns were recorded before the turn was over.
CREATE VIEW futile_attempts (job_id, attempt, reason) AS
SELECT home.job_id, a.attempt, a.reason
  FROM jobs AS home CROSS JOIN attempts AS a
 WHERE a.job_id = home.job_id AND a.unit = '' AND a.charged = 1
   AND a.attempt > coalesce((SELECT w.attempt
                               FROM attempts AS w
                              WHERE w.job_id = home.job_id AND w.unit = '' AND w.reason = 'SUSPENDED'
                              ORDER BY w.attempt DESC
                              LIMIT 1), 0)
   AND a.attempt >= coalesce((SELECT max(s.attempt)
                                FROM steps AS s
                               WHERE s.job_id = home.job_id AND s.dimension = home.dimension), 0);

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
  CHECK (ledger BETWEEN 0 AND 999999999999999
         AND ledger / 1000000000000 % 1000 <= 0
         AND ledger / 100000000000 % 10 <= 1
         AND ledger / 10000000000 % 10 <= 1
         AND ledger / 1000000000 % 10 <= 1
         AND ledger / 100000000 % 10 <= 1),
  CHECK (redeliveries >= 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX messages_inbox ON messages (job_id, arrived) WHERE acked_at IS NULL;
CREATE INDEX messages_of_job ON messages (job_id);
CREATE INDEX messages_waiting ON messages (job_id, kind, name, arrived) WHERE acked_at IS NULL;
CREATE INDEX messages_begun ON messages (job_id) WHERE acked_at IS NULL AND ledger > 0;

-- What a job claims about its own history, with its root. An open activity is the start message until it is acknowledged,
-- every step that has not ended, and the message that drives the job once it is taken.
CREATE VIEW job_books AS
SELECT job_id, state, attempt, hold, hold_reason, semaphore, root_ledger, start_ledger, ledger_form, head_n, head_hash, rev,
       options,
       (start_acked_at IS NULL)
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
  CHECK (state = 'PENDING' OR state = 'SENT' OR state = 'FAILED_FINAL'),
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

-- How far the clock of this file is ahead of the boot clock of its machine, in the boot that `epoch` names. It never
-- falls while that boot lasts, so a wall clock that is set back makes nobody wait. One row.
CREATE TABLE clock (
  id    INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  epoch TEXT NOT NULL,
  ahead INTEGER NOT NULL
) STRICT;

-- Illegal changes are refused here too, even for an UPDATE by hand: what has ended stays as it ended, states move as
-- their lifecycle lists, ledgers only grow. A final job may still learn which job took its place, and be pruned.

CREATE TRIGGER jobs_births BEFORE INSERT ON jobs
WHEN NOT (NEW.state = 'QUEUED' OR NEW.state = 'IN_PROGRESS')
BEGIN SELECT RAISE(FAIL, 'ILLEGAL_TRANSITION: no job begins in this state'); END;
CREATE TRIGGER outbox_births BEFORE INSERT ON outbox
WHEN NOT (NEW.state = 'PENDING')
BEGIN SELECT RAISE(FAIL, 'ILLEGAL_TRANSITION: no outbox begins in this state'); END;

CREATE TRIGGER jobs_guard AFTER UPDATE OF
  job_id, state, attempt, ready_at, hold, semaphore, root_ledger, ledger_form, start_ledger, start_redeliveries,
  start_acked_at, head_n, head_hash, completed_at, kind, handler, version, dimension, created_at, payload, options, result,
  error, error_code, error_message, tenant_id, idempotency_key, idempotency_hash, parent_job_id, parent_step, retry_of
ON jobs
WHEN OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED'
  OR NEW.start_ledger < OLD.start_ledger
  OR NEW.root_ledger < OLD.root_ledger
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

CREATE TRIGGER attempts_guard AFTER UPDATE ON attempts
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

-- The state of a wait or a group ends with step 1 of its message; after that its row may learn steps 2 and 3, each once.
CREATE TRIGGER steps_guard AFTER UPDATE OF
  job_id, dimension, name, occurrence, kind, state, n, attempt, created_at, completed_at, result, error, notes, prev_hash,
  event_hash, origin_job_id, origin_dimension, semaphore, threshold, failed, step_index, step_type, service, attempt_no,
  lease_id, lease_expires_at, input_ref, workspace_ref, output_ref, payload, resolved_mode, lane, routing_key_used,
  decision_source, decision_reason, last_error_code, last_error_message, updated_at, misplaced
ON steps
WHEN OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED'
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

CREATE TRIGGER steps_learn AFTER UPDATE OF ledger, rev ON steps
WHEN NEW.ledger < OLD.ledger
  OR ((OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED') AND NOT (NEW.ledger - OLD.ledger = 1000000000 OR NEW.ledger - OLD.ledger = 100000000 OR NEW.ledger - OLD.ledger = 1100000000))
BEGIN
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases') WHERE NEW.ledger < OLD.ledger;
  SELECT RAISE(ABORT, 'FINAL: this step has ended and cannot change');
END;

CREATE TRIGGER outbox_guard AFTER UPDATE ON outbox
WHEN OLD.state = 'SENT' OR OLD.state = 'FAILED_FINAL'
  OR (OLD.state <> NEW.state AND NOT (
          OLD.state = 'PENDING' AND (NEW.state = 'SENT' OR NEW.state = 'FAILED_FINAL')))
BEGIN
  SELECT RAISE(ABORT, 'FINAL: this outbox has ended and cannot change') WHERE OLD.state = 'SENT' OR OLD.state = 'FAILED_FINAL';
  SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the outbox lifecycle has no such move')
   WHERE OLD.state <> NEW.state;
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases');
END;

CREATE TRIGGER messages_guard AFTER UPDATE OF ledger ON messages WHEN NEW.ledger < OLD.ledger
BEGIN SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases'); END;

CREATE TRIGGER events_guard AFTER UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'FINAL: an event is a fact and cannot change'); END;

-- Steps are written under a fence, and the statements that insert them look for an event at their place too. Whoever writes for
-- a job holds its attempt, its row or the file, so nobody comes in between.
CREATE TRIGGER steps_placed AFTER UPDATE OF n ON steps
WHEN EXISTS (SELECT 1 FROM events WHERE job_id = NEW.job_id AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'PLACE: an event stands at this place of the chain'); END;

CREATE TRIGGER events_place AFTER INSERT ON events
WHEN NEW.n > 2 AND EXISTS (SELECT 1 FROM steps WHERE job_id = NEW.job_id AND n = NEW.n AND misplaced IS NULL)
BEGIN SELECT RAISE(ABORT, 'PLACE: a step stands at this place of the chain'); END;

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

-- Step 2 of a message as one statement: an INSERT here moves the semaphore of a job, marks the message and its activity,
-- and checks that the semaphore came to zero by this exactly if it was said to; all or nothing.
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
