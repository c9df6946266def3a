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
-- Instants are milliseconds since 1970, by the clock of this server; a lease's end too, while `lease_epoch` says so.
-- Keys and names are plain ASCII and compare byte by byte, whatever the locale of the database.
-- A table whose rows change keeps room on its pages, so that a change stays where it is and touches no index.

-- Refuse: called by triggers, with the reason.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
END $$;

-- Insist: what follows in this transaction, its COMMIT too, is only for the case that this is so.
CREATE FUNCTION insist(so BOOLEAN) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  IF NOT so THEN
    RAISE EXCEPTION 'the fence is gone' USING ERRCODE = 'TSF01';
  END IF;
END $$;

-- What was planned under a lock and did not happen is a mistake of ours: nothing of it is written.
CREATE FUNCTION expect_rows(statement TEXT, changed BIGINT, planned BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
  IF changed <> planned THEN
    RAISE EXCEPTION 'MARKER: % changed % rows of % that were planned', statement, changed, planned
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
END $$;

-- The time: that of this server, unless a test brings its own.
CREATE FUNCTION store_ms(given BIGINT) RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(given, floor(extract(EPOCH FROM clock_timestamp()) * 1000)::bigint)
$$;

-- The hash of a fact, as every author of a chain computes it: the fields and a NUL after each, then the hash before.
CREATE FUNCTION fact_hash(
  prev BYTEA, job_id TEXT, n BIGINT, kind TEXT, at BIGINT, attempt BIGINT, payload TEXT
) RETURNS BYTEA LANGUAGE sql STABLE AS $$
  SELECT sha256(convert_to(job_id, 'UTF8') || '\x00'::bytea || convert_to(n::text, 'UTF8') || '\x00'::bytea
                || convert_to(kind, 'UTF8') || '\x00'::bytea || convert_to(at::text, 'UTF8') || '\x00'::bytea
                || convert_to(attempt::text, 'UTF8') || '\x00'::bytea || convert_to(payload, 'UTF8') || '\x00'::bytea
                || prev)
$$;

CREATE TABLE idempotency (
  tenant_id     TEXT COLLATE "C" NOT NULL,
  scope         TEXT COLLATE "C" NOT NULL CHECK (scope IN ('key', 'content')),
  value         TEXT COLLATE "C" NOT NULL,
  job_id        TEXT COLLATE "C" NOT NULL,
  content_hash  TEXT NOT NULL,
  canon_version BIGINT NOT NULL,
  created_at    BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, scope, value)
);

CREATE TABLE jobs (
  job_id             TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  state              TEXT COLLATE "C" NOT NULL,
  attempt            BIGINT NOT NULL DEFAULT 0 CHECK (attempt >= 0),
  ready_at           BIGINT,
  hold               TEXT CHECK (hold = ANY ('{PAUSED,IN_DOUBT,MISMATCH,RESTORED,SUSPEND_SWALLOWED}')),
  queue              TEXT COLLATE "C" NOT NULL DEFAULT 'default',
  priority           BIGINT NOT NULL DEFAULT 5 CHECK (priority BETWEEN 0 AND 9),
  semaphore          BIGINT NOT NULL DEFAULT 1 CHECK (semaphore >= 0),
  start_ledger       BIGINT NOT NULL DEFAULT 0,
  start_redeliveries BIGINT NOT NULL DEFAULT 0,
  start_acked_at     BIGINT,
  head_n             BIGINT NOT NULL DEFAULT 0,
  head_hash          BYTEA NOT NULL DEFAULT '',
  rev                BIGINT NOT NULL DEFAULT 1,
  updated_at         BIGINT NOT NULL,
  completed_at       BIGINT,
  kind               TEXT COLLATE "C" NOT NULL DEFAULT 'workflow' CHECK (kind = ANY ('{workflow,protocol,map}')),
  handler            TEXT COLLATE "C" NOT NULL,
  version            TEXT COLLATE "C" NOT NULL DEFAULT '',
  dimension          BIGINT NOT NULL DEFAULT 0,
  deadline_at        BIGINT,
  cancel_at          BIGINT,
  created_at         BIGINT NOT NULL,
  payload            TEXT NOT NULL,
  options            TEXT NOT NULL DEFAULT '{}',
  result             TEXT,
  error              TEXT,
  error_code         TEXT,
  error_message      TEXT,
  hold_reason        TEXT,
  tenant_id          TEXT COLLATE "C" NOT NULL DEFAULT 'default',
  request_type       TEXT,
  protocol_id        TEXT,
  mode               TEXT,
  doc_id             TEXT,
  input_ref          TEXT,
  output_ref         TEXT,
  schema_version     TEXT,
  idempotency_key    TEXT,
  idempotency_hash   TEXT,
  canon_version      BIGINT,
  current_step_id    TEXT,
  current_step_index BIGINT,
  attempts_total     BIGINT NOT NULL DEFAULT 0,
  correlation_id     TEXT,
  traceparent        TEXT,
  tags               TEXT,
  parent_job_id      TEXT COLLATE "C",
  parent_step        TEXT,
  detached           BIGINT NOT NULL DEFAULT 0 CHECK (detached IN (0, 1)),
  retry_of           TEXT,
  retried_as         TEXT,
  pruned_at          BIGINT,
  -- What only some jobs are looked for by: null for all others, from birth to end, so that ending one touches no index.
  open_parent        TEXT COLLATE "C" GENERATED ALWAYS AS (
    CASE WHEN completed_at IS NULL AND detached = 0 THEN parent_job_id END) STORED,
  asked_at           BIGINT GENERATED ALWAYS AS (CASE WHEN state = 'CANCELLING' THEN cancel_at END) STORED,
  open_deadline      BIGINT GENERATED ALWAYS AS (CASE WHEN completed_at IS NULL THEN deadline_at END) STORED,
  dead               TEXT COLLATE "C" GENERATED ALWAYS AS (
    CASE WHEN state = 'FAILED_FINAL' AND retried_as IS NULL THEN job_id END) STORED,
  -- The digits of a job's own activity, its root; how its digits are kept: 0 for jobs of files that were older than the root's.
  root_ledger        BIGINT NOT NULL DEFAULT 0,
  ledger_form        BIGINT NOT NULL DEFAULT 0 CHECK (ledger_form = 0 OR ledger_form = 1),
  CHECK (state = ANY ('{QUEUED,DISPATCHING,IN_PROGRESS,CANCELLING,SUCCEEDED,FAILED_FINAL,CANCELLED}')),
  CHECK ((state = ANY ('{SUCCEEDED,FAILED_FINAL,CANCELLED}')) = (completed_at IS NOT NULL)),
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
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- Only what may be claimed is in this index, so a claim costs the same whatever has piled up elsewhere.
CREATE INDEX jobs_to_claim ON jobs (queue, priority, ready_at, job_id)
  WHERE ready_at IS NOT NULL AND hold IS NULL;
-- No index below mentions a column that every job changes when it ends: not even as a condition.
CREATE INDEX jobs_by_deadline ON jobs (open_deadline) WHERE open_deadline IS NOT NULL;
CREATE INDEX jobs_of_parent ON jobs (parent_job_id, parent_step, job_id) WHERE parent_job_id IS NOT NULL;
CREATE INDEX jobs_open_children ON jobs (open_parent) WHERE open_parent IS NOT NULL;
CREATE INDEX jobs_to_cancel ON jobs (asked_at) WHERE asked_at IS NOT NULL;
CREATE INDEX jobs_dead ON jobs (tenant_id, dead) WHERE dead IS NOT NULL;

-- The tags of a job again, to find it by. They follow from `jobs.tags` and go with the job.
CREATE TABLE job_tags (
  tag    TEXT COLLATE "C" NOT NULL,
  job_id TEXT COLLATE "C" NOT NULL REFERENCES jobs ON DELETE CASCADE,
  PRIMARY KEY (tag, job_id)
);

CREATE INDEX job_tags_of_job ON job_tags (job_id);

CREATE FUNCTION note_tags() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  INSERT INTO job_tags (tag, job_id) SELECT DISTINCT tag, NEW.job_id FROM jsonb_array_elements_text(NEW.tags::jsonb) AS tag;
  RETURN NULL;
END $$;

CREATE TRIGGER jobs_tagged AFTER INSERT ON jobs FOR EACH ROW WHEN (NEW.tags IS NOT NULL) EXECUTE FUNCTION note_tags();

CREATE TABLE attempts (
  job_id           TEXT COLLATE "C" NOT NULL,
  unit             TEXT COLLATE "C" NOT NULL DEFAULT '',
  attempt          BIGINT NOT NULL CHECK (attempt >= 1),
  status           TEXT COLLATE "C" NOT NULL,
  lease_id         TEXT COLLATE "C" NOT NULL,
  lease_epoch      TEXT COLLATE "C" NOT NULL,
  lease_expires_at BIGINT NOT NULL,
  lease_owner      TEXT NOT NULL,
  reason           TEXT,
  charged          BIGINT NOT NULL DEFAULT 0 CHECK (charged IN (0, 1)),
  guid             TEXT COLLATE "C" NOT NULL DEFAULT 'start',
  started_at       BIGINT,
  finished_at      BIGINT,
  CHECK (status = ANY ('{LEASED,IN_PROGRESS,COMMITTED,DONE,ABORTED}')),
  CHECK ((status = 'ABORTED') = (reason IS NOT NULL)),
  PRIMARY KEY (job_id, unit, attempt)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

CREATE UNIQUE INDEX attempts_one_live ON attempts (job_id, unit) WHERE status IN ('LEASED', 'IN_PROGRESS');
CREATE UNIQUE INDEX attempts_one_committed ON attempts (job_id, unit) WHERE status IN ('COMMITTED', 'DONE');

-- A sweep looks through `attempts_one_live`: it holds only what runs now. The end of a lease is in no index, so that a
-- heartbeat touches none.

-- The name of an attempt, as specification 002 spells it: `SELECT attempts.exec_id FROM attempts`.
CREATE FUNCTION exec_id(attempts) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
  SELECT $1.job_id || ':' || $1.unit || ':' || $1.attempt
$$;

-- Steps and events are appended by many jobs at once: in the order of writing a flush touches few pages.
CREATE TABLE steps (
  job_id             TEXT COLLATE "C" NOT NULL,
  dimension          BIGINT NOT NULL DEFAULT 0,
  name               TEXT COLLATE "C" NOT NULL,
  occurrence         BIGINT NOT NULL DEFAULT 1 CHECK (occurrence >= 1),
  kind               TEXT COLLATE "C" NOT NULL CHECK (kind = ANY ('{step,tx,effect,remote,wait,sleep,group,protocol}')),
  state              TEXT COLLATE "C" NOT NULL,
  ledger             BIGINT NOT NULL DEFAULT 0,
  n                  BIGINT,
  attempt            BIGINT,
  created_at         BIGINT NOT NULL,
  completed_at       BIGINT,
  result             TEXT,
  error              TEXT,
  notes              TEXT,
  prev_hash          BYTEA,
  event_hash         BYTEA,
  origin_job_id      TEXT COLLATE "C",
  origin_dimension   BIGINT,
  semaphore          BIGINT CHECK (semaphore >= 0),
  threshold          BIGINT,
  failed             BIGINT,
  step_index         BIGINT,
  step_type          TEXT,
  service            TEXT,
  attempt_no         BIGINT,
  lease_id           TEXT COLLATE "C",
  lease_expires_at   BIGINT,
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
  updated_at         BIGINT,
  rev                BIGINT NOT NULL DEFAULT 1,
  -- Of steps that stood at one place in an older file, those behind the first are left out of the key; `doctor` tells.
  misplaced          BIGINT CHECK (misplaced = 1),
  CHECK (state = ANY ('{PENDING,DISPATCHING,AWAITING_ACK,IN_PROGRESS,FAILED_RETRY,SUCCEEDED,FAILED_FINAL,CANCELLED}')),
  CHECK ((state = ANY ('{SUCCEEDED,FAILED_FINAL,CANCELLED}')) = (completed_at IS NOT NULL)),
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
);

-- The name of a step, as specification 001 spells it: `SELECT steps.step_id FROM steps`.
CREATE FUNCTION step_id(steps) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$ SELECT $1.name || '#' || $1.occurrence $$;

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
  FROM jobs AS home
 CROSS JOIN LATERAL (
       SELECT attempts.attempt, attempts.reason
         FROM attempts
        WHERE attempts.job_id = home.job_id AND attempts.unit = '' AND attempts.charged = 1
          AND attempts.attempt > coalesce((SELECT w.attempt
                                             FROM attempts AS w
                                            WHERE w.job_id = home.job_id AND w.unit = '' AND w.reason = 'SUSPENDED'
                                            ORDER BY w.attempt DESC
                                            LIMIT 1), 0)
       OFFSET 0) AS a
 WHERE a.attempt >= coalesce((SELECT max(s.attempt)
                                FROM steps AS s
                               WHERE s.job_id = home.job_id AND s.dimension = home.dimension), 0);

CREATE TABLE messages (
  guid         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  job_id       TEXT COLLATE "C" NOT NULL,
  dimension    BIGINT NOT NULL DEFAULT 0,
  name         TEXT COLLATE "C" NOT NULL,
  occurrence   BIGINT,
  kind         TEXT COLLATE "C" NOT NULL CHECK (kind = ANY ('{start,signal,timer,child,result,resume}')),
  payload      TEXT,
  due_at       BIGINT,
  ledger       BIGINT NOT NULL DEFAULT 0,
  redeliveries BIGINT NOT NULL DEFAULT 0,
  created_at   BIGINT NOT NULL,
  arrived      BIGINT NOT NULL DEFAULT 0,
  acked_at     BIGINT,
  CHECK (ledger BETWEEN 0 AND 999999999999999
         AND ledger / 1000000000000 % 1000 <= 0
         AND ledger / 100000000000 % 10 <= 1
         AND ledger / 10000000000 % 10 <= 1
         AND ledger / 1000000000 % 10 <= 1
         AND ledger / 100000000 % 10 <= 1),
  CHECK (redeliveries >= 0)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- Only who asks for the newest arrival may take this one: it would do for any message, after reading all others.
CREATE INDEX messages_inbox ON messages (job_id, arrived) WHERE acked_at IS NULL AND arrived >= 0;
CREATE INDEX messages_of_job ON messages (job_id);
CREATE INDEX messages_waiting ON messages (job_id, kind, name, arrived) WHERE acked_at IS NULL;
CREATE INDEX messages_begun ON messages (job_id) WHERE acked_at IS NULL AND ledger > 0;

-- What a job claims about its own history, with its root. An open activity is the start message until it is acknowledged,
-- every step that has not ended, and the message that drives the job once it is taken.
CREATE VIEW job_books AS
SELECT job_id, state, attempt, hold, hold_reason, semaphore, root_ledger, start_ledger, ledger_form, head_n, head_hash, rev,
       options,
       CASE WHEN start_acked_at IS NULL THEN 1 ELSE 0 END
       + (SELECT count(*)
            FROM steps
           WHERE steps.job_id = jobs.job_id AND steps.completed_at IS NULL AND steps.kind <> 'protocol')
       + (SELECT count(*)
            FROM messages
           WHERE messages.job_id = jobs.job_id AND messages.acked_at IS NULL AND messages.kind <> 'child'
             AND (messages.ledger / 10000000000 % 10 = 1 OR (messages.kind = 'resume' AND messages.name = 'again'))) AS open_activities
  FROM jobs;

CREATE TABLE events (
  job_id     TEXT COLLATE "C" NOT NULL,
  n          BIGINT NOT NULL CHECK (n >= 1),
  type       TEXT NOT NULL,
  at         BIGINT NOT NULL,
  attempt    BIGINT NOT NULL,
  payload    TEXT NOT NULL,
  prev_hash  BYTEA NOT NULL,
  event_hash BYTEA NOT NULL,
  PRIMARY KEY (job_id, n)
);

CREATE TABLE outbox (
  outbox_id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  tenant_id        TEXT COLLATE "C" NOT NULL,
  job_id           TEXT COLLATE "C" NOT NULL,
  step_id          TEXT NOT NULL,
  attempt_no       BIGINT NOT NULL,
  lease_id         TEXT COLLATE "C" NOT NULL,
  state            TEXT COLLATE "C" NOT NULL,
  topic            TEXT NOT NULL,
  partition        TEXT,
  payload          TEXT NOT NULL,
  resolved_mode    TEXT,
  lane             TEXT,
  routing_key_used TEXT,
  decision_source  TEXT,
  decision_reason  TEXT,
  tries            BIGINT NOT NULL DEFAULT 0,
  next_try_at      BIGINT,
  created_at       BIGINT NOT NULL,
  sent_at          BIGINT,
  updated_at       BIGINT NOT NULL,
  rev              BIGINT NOT NULL DEFAULT 1,
  CHECK (state = ANY ('{PENDING,SENT,FAILED_FINAL}')),
  CHECK ((state = 'SENT') = (sent_at IS NOT NULL))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX outbox_of_job ON outbox (job_id);
CREATE INDEX outbox_to_publish ON outbox (next_try_at) WHERE state = 'PENDING';

CREATE TABLE stale_reports (
  id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       BIGINT NOT NULL,
  job_id   TEXT COLLATE "C" NOT NULL,
  attempt  BIGINT NOT NULL,
  lease_id TEXT COLLATE "C" NOT NULL,
  report   TEXT NOT NULL
);

-- Illegal changes are refused here too, even for an UPDATE by hand: what has ended stays as it ended, states move as
-- their lifecycle lists, ledgers only grow. A final job may still learn which job took its place, and be pruned.

CREATE TRIGGER jobs_births BEFORE INSERT ON jobs FOR EACH ROW
WHEN (NOT (NEW.state = ANY ('{QUEUED,IN_PROGRESS}')))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: no job begins in this state');
CREATE TRIGGER outbox_births BEFORE INSERT ON outbox FOR EACH ROW
WHEN (NOT (NEW.state = ANY ('{PENDING}')))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: no outbox begins in this state');

CREATE TRIGGER jobs_guard BEFORE UPDATE OF
  job_id, state, attempt, ready_at, hold, semaphore, root_ledger, ledger_form, start_ledger, start_redeliveries,
  start_acked_at, head_n, head_hash, completed_at, kind, handler, version, dimension, created_at, payload, options, result,
  error, error_code, error_message, tenant_id, idempotency_key, idempotency_hash, parent_job_id, parent_step, retry_of
ON jobs FOR EACH ROW WHEN (OLD.completed_at IS NOT NULL)
EXECUTE FUNCTION refuse_change('FINAL: this job has ended and cannot change');
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
    QUEUED>CANCELLED,
    DISPATCHING>CANCELLED,
    IN_PROGRESS>CANCELLED}'))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: the job lifecycle has no such move');

CREATE TRIGGER jobs_ledger BEFORE UPDATE ON jobs FOR EACH ROW
WHEN (NEW.start_ledger < OLD.start_ledger)
EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');
CREATE TRIGGER jobs_root_ledger BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.root_ledger < OLD.root_ledger)
EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');

CREATE TRIGGER attempts_guard BEFORE UPDATE ON attempts FOR EACH ROW
WHEN (OLD.status = ANY ('{DONE,ABORTED}'))
EXECUTE FUNCTION refuse_change('FINAL: this attempt has ended and cannot change');

CREATE TRIGGER attempts_moves BEFORE UPDATE ON attempts FOR EACH ROW
WHEN (OLD.status <> NEW.status AND OLD.status || '>' || NEW.status <> ALL ('{
    LEASED>IN_PROGRESS,
    IN_PROGRESS>COMMITTED,
    COMMITTED>DONE,
    LEASED>ABORTED,
    IN_PROGRESS>ABORTED,
    IN_PROGRESS>DONE}'))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: the attempt lifecycle has no such move');

-- The state of a wait or a group ends with step 1 of its message; after that its row may learn steps 2 and 3, each once.
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
    AWAITING_ACK>SUCCEEDED}'))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: the step lifecycle has no such move');

CREATE TRIGGER steps_ledger BEFORE UPDATE ON steps FOR EACH ROW
WHEN (NEW.ledger < OLD.ledger)
EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');

CREATE TRIGGER steps_learn BEFORE UPDATE ON steps FOR EACH ROW
WHEN (OLD.state = ANY ('{SUCCEEDED,FAILED_FINAL,CANCELLED}') AND NOT (NEW.ledger - OLD.ledger = 1000000000 OR NEW.ledger - OLD.ledger = 100000000 OR NEW.ledger - OLD.ledger = 1100000000))
EXECUTE FUNCTION refuse_change('FINAL: this step has ended and cannot change');

CREATE TRIGGER outbox_guard BEFORE UPDATE ON outbox FOR EACH ROW
WHEN (OLD.state = ANY ('{SENT,FAILED_FINAL}'))
EXECUTE FUNCTION refuse_change('FINAL: this outbox has ended and cannot change');

CREATE TRIGGER outbox_moves BEFORE UPDATE ON outbox FOR EACH ROW
WHEN (OLD.state <> NEW.state AND OLD.state || '>' || NEW.state <> ALL ('{
    PENDING>SENT,
    PENDING>FAILED_FINAL}'))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: the outbox lifecycle has no such move');

CREATE TRIGGER messages_guard BEFORE UPDATE ON messages FOR EACH ROW WHEN (NEW.ledger < OLD.ledger)
EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');

CREATE TRIGGER events_guard BEFORE UPDATE ON events FOR EACH ROW
EXECUTE FUNCTION refuse_change('FINAL: an event is a fact and cannot change');

-- Steps are written under a fence, and the statements that insert them look for an event at their place too. Whoever writes for
-- a job holds its attempt, its row or the file, so nobody comes in between.

CREATE FUNCTION refuse_place_of_event() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM events WHERE events.job_id = NEW.job_id AND events.n = NEW.n) THEN
    RAISE EXCEPTION 'PLACE: an event stands at this place of the chain'
      USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION refuse_place_of_step() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT 1
               FROM steps
              WHERE steps.job_id = NEW.job_id AND steps.n = NEW.n AND steps.misplaced IS NULL) THEN
    RAISE EXCEPTION 'PLACE: a step stands at this place of the chain'
      USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER steps_placed AFTER UPDATE OF n ON steps FOR EACH ROW WHEN (NEW.n IS NOT NULL)
EXECUTE FUNCTION refuse_place_of_event();

-- The first two places are those of the submission and of the first claim. The two statements that write a return look for
-- a step at its place too: every job that ends well would pay for this.
CREATE TRIGGER events_place AFTER INSERT ON events FOR EACH ROW WHEN (NEW.n > 2 AND NEW.type <> 'return')
EXECUTE FUNCTION refuse_place_of_step();

-- Retention marks a final job as pruned, then removes its books, children first. Nothing else is ever deleted, and so
-- nothing can be replaced.

CREATE TRIGGER jobs_delete BEFORE DELETE ON jobs FOR EACH ROW WHEN (OLD.pruned_at IS NULL)
EXECUTE FUNCTION refuse_change('DELETE: this job is not pruned');

CREATE FUNCTION refuse_unless_pruned() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM jobs WHERE job_id = OLD.job_id AND pruned_at IS NULL) THEN
    RAISE EXCEPTION 'DELETE: the job of this row is not pruned'
      USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
  END IF;
  RETURN OLD;
END $$;

CREATE TRIGGER attempts_delete BEFORE DELETE ON attempts FOR EACH ROW EXECUTE FUNCTION refuse_unless_pruned();
CREATE TRIGGER attempts_truncate BEFORE TRUNCATE ON attempts
EXECUTE FUNCTION refuse_change('DELETE: books are pruned, never emptied');
CREATE TRIGGER steps_delete BEFORE DELETE ON steps FOR EACH ROW EXECUTE FUNCTION refuse_unless_pruned();
CREATE TRIGGER steps_truncate BEFORE TRUNCATE ON steps
EXECUTE FUNCTION refuse_change('DELETE: books are pruned, never emptied');
CREATE TRIGGER messages_delete BEFORE DELETE ON messages FOR EACH ROW EXECUTE FUNCTION refuse_unless_pruned();
CREATE TRIGGER messages_truncate BEFORE TRUNCATE ON messages
EXECUTE FUNCTION refuse_change('DELETE: books are pruned, never emptied');
CREATE TRIGGER events_delete BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION refuse_unless_pruned();
CREATE TRIGGER events_truncate BEFORE TRUNCATE ON events
EXECUTE FUNCTION refuse_change('DELETE: books are pruned, never emptied');
CREATE TRIGGER jobs_truncate BEFORE TRUNCATE ON jobs
EXECUTE FUNCTION refuse_change('DELETE: books are pruned, never emptied');

