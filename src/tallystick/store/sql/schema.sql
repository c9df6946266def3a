-- The life of a row, in the order in which a job meets the tables:
--
--   idempotency  a reservation makes many submissions of one content one job
--   jobs         one submission; it also carries its start message and its semaphore
--   attempts     a worker claims the job: one leased try, the fence of everything below
--   effect_keys  calls that reach outside, by their keys: the intent, and what came of it
--   steps        what the workflow did, one row each; an inline step's row is its own event
--   messages     what arrives for a job (signal, timer, child, result), each with its own ledger
--   events       what became true, hash-chained per job; only ever appended
--   job_values   what the job shows of itself while it runs, the last value of each name
--   outbox       directives on their way to remote workers
--   schedules    timetables: each tick becomes a job, in one transaction with the next tick
--   queues       limits of queues that have any, with the slots that are taken and the tokens that are spent
--   workers      the workers of now, and how many jobs each ended by the minute
--   api_keys     keys of clients over HTTP, each for a tenant
--   stale_reports  reports that came too late: refused, counted, kept for people
--   acts         what people did to jobs, queues and schedules, and who it was, in a chain of its own
--   pruned       what was removed by right, in a chain of its own: whatever else is missing was lost
--
#| This is the schema of both databases; `store/sql/schema.py` prints it for each, without these lines. What begins with `S|` is for
#| SQLite alone, with `P|` for PostgreSQL. NAME is a text that compares byte by byte, INT a whole number, HASH bytes. A rule is
#| printed from the machines and the digits (`core/printing/sql_rules.py`). A new column comes last, as it does in older files.
S|-- Instants are milliseconds since 1970, except a lease's end: that is on the clock `lease_epoch` names.
P|-- Instants are milliseconds since 1970, by the clock of this server; a lease's end too, while `lease_epoch` says so.
P|-- Keys and names are plain ASCII and compare byte by byte, whatever the locale of the database.
P|-- A table whose rows change keeps room on its pages, so that a change stays where it is and touches no index.

P|-- Refuse: called by triggers, with the reason.
P|CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
P|BEGIN
P|  RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
P|END $$;

P|-- Insist: what follows in this transaction, its COMMIT too, is only for the case that this is so.
P|CREATE FUNCTION insist(so BOOLEAN) RETURNS VOID LANGUAGE plpgsql AS $$
P|BEGIN
P|  IF NOT so THEN
P|    RAISE EXCEPTION 'the fence is gone' USING ERRCODE = 'TSF01';
P|  END IF;
P|END $$;

P|-- What was planned under a lock and did not happen is a mistake of ours: nothing of it is written.
P|CREATE FUNCTION expect_rows(statement TEXT, changed BIGINT, planned BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
P|BEGIN
P|  IF changed <> planned THEN
P|    RAISE EXCEPTION 'MARKER: % changed % rows of % that were planned', statement, changed, planned
P|      USING ERRCODE = 'integrity_constraint_violation';
P|  END IF;
P|END $$;

P|-- The time: that of this server, unless a test brings its own.
P|CREATE FUNCTION store_ms(given BIGINT) RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
P|  SELECT coalesce(given, floor(extract(EPOCH FROM clock_timestamp()) * 1000)::bigint)
P|$$;

P|-- The hash of a fact, as every author of a chain computes it: the fields and a NUL after each, then the hash before.
P|CREATE FUNCTION fact_hash(
P|  prev BYTEA, job_id TEXT, n BIGINT, kind TEXT, at BIGINT, attempt BIGINT, payload TEXT
P|) RETURNS BYTEA LANGUAGE sql STABLE AS $$
P|  SELECT sha256(convert_to(job_id, 'UTF8') || '\x00'::bytea || convert_to(n::text, 'UTF8') || '\x00'::bytea
P|                || convert_to(kind, 'UTF8') || '\x00'::bytea || convert_to(at::text, 'UTF8') || '\x00'::bytea
P|                || convert_to(attempt::text, 'UTF8') || '\x00'::bytea || convert_to(payload, 'UTF8') || '\x00'::bytea
P|                || prev)
P|$$;

CREATE TABLE idempotency (
  tenant_id     NAME NOT NULL,
  scope         NAME NOT NULL CHECK (scope IN ('key', 'content')),
  value         NAME NOT NULL,
  job_id        NAME NOT NULL,
  content_hash  TEXT NOT NULL,
  canon_version INT NOT NULL,
  created_at    INT NOT NULL,
  PRIMARY KEY (tenant_id, scope, value)
S|) STRICT, WITHOUT ROWID;
P|);

CREATE TABLE jobs (
  job_id             NAME NOT NULL PRIMARY KEY,
  state              NAME NOT NULL,
  attempt            INT NOT NULL DEFAULT 0 CHECK (attempt >= 0),
  ready_at           INT,
  hold               TEXT CHECK (one of: hold PAUSED IN_DOUBT MISMATCH RESTORED SUSPEND_SWALLOWED REFUSED),
  queue              NAME NOT NULL DEFAULT 'default',
  priority           INT NOT NULL DEFAULT 5 CHECK (priority BETWEEN 0 AND 9),
  semaphore          INT NOT NULL DEFAULT 1 CHECK (semaphore >= 0),
  start_ledger       INT NOT NULL DEFAULT 0,
  start_redeliveries INT NOT NULL DEFAULT 0,
  start_acked_at     INT,
  head_n             INT NOT NULL DEFAULT 0,
S|  head_hash          BLOB NOT NULL DEFAULT x'',
P|  head_hash          BYTEA NOT NULL DEFAULT '',
  rev                INT NOT NULL DEFAULT 1,
  updated_at         INT NOT NULL,
  completed_at       INT,
  kind               NAME NOT NULL DEFAULT 'workflow' CHECK (one of: kind workflow protocol map),
  handler            NAME NOT NULL,
  version            NAME NOT NULL DEFAULT '',
  dimension          INT NOT NULL DEFAULT 0,
  deadline_at        INT,
  cancel_at          INT,
  created_at         INT NOT NULL,
  payload            TEXT NOT NULL,
  options            TEXT NOT NULL DEFAULT '{}',
  result             TEXT,
  error              TEXT,
  error_code         TEXT,
  error_message      TEXT,
  hold_reason        TEXT,
  tenant_id          NAME NOT NULL DEFAULT 'default',
  request_type       TEXT,
  protocol_id        TEXT,
  mode               TEXT,
  doc_id             TEXT,
  input_ref          TEXT,
  output_ref         TEXT,
  schema_version     TEXT,
  idempotency_key    TEXT,
  idempotency_hash   TEXT,
  canon_version      INT,
  -- Of a protocol job alone: a workflow may have several steps open.
  current_step_id    TEXT,
  current_step_index INT,
  -- How often a workflow was claimed; of a protocol job how many directives it has made.
  attempts_total     INT NOT NULL DEFAULT 0,
  correlation_id     TEXT,
  traceparent        TEXT,
  tags               TEXT,
  parent_job_id      NAME,
  parent_step        TEXT,
  detached           INT NOT NULL DEFAULT 0 CHECK (detached IN (0, 1)),
  retry_of           TEXT,
  retried_as         TEXT,
  pruned_at          INT,
P|  -- What only some jobs are looked for by: null for all others, from birth to end, so that ending one touches no index.
P|  open_parent        TEXT COLLATE "C" GENERATED ALWAYS AS (
P|    CASE WHEN completed_at IS NULL AND detached = 0 THEN parent_job_id END) STORED,
P|  asked_at           BIGINT GENERATED ALWAYS AS (CASE WHEN state = 'CANCELLING' THEN cancel_at END) STORED,
P|  open_deadline      BIGINT GENERATED ALWAYS AS (CASE WHEN completed_at IS NULL THEN deadline_at END) STORED,
P|  dead               TEXT COLLATE "C" GENERATED ALWAYS AS (
P|    CASE WHEN state = 'FAILED_FINAL' AND retried_as IS NULL THEN job_id END) STORED,
  -- The digits of a job's own activity, its root; how its digits are kept: 0 for jobs of files that were older than the root's.
  root_ledger        INT NOT NULL DEFAULT 0,
  ledger_form        INT NOT NULL DEFAULT 0 CHECK (ledger_form = 0 OR ledger_form = 1),
  -- The hooks that the program of a job declares, which of them was told where the job stands, and since when one is owed:
  -- that follows from the row. A hook that is being called, or that raised, is left alone until `hook_at`.
  hooks              TEXT,
  hook_told          TEXT,
  hook_at            INT,
  hook_tries         INT NOT NULL DEFAULT 0,
  hook_error         TEXT,
S|  hook_due           INTEGER GENERATED ALWAYS AS (
P|  hook_due           BIGINT GENERATED ALWAYS AS (
    rule: hooks job hook_due
S|  ) VIRTUAL,
P|  ) STORED,
  -- Jobs with one key share its limits. In a queue with limits a job that was claimed says so: it spends no second token.
  limit_key          NAME,
  began_in           NAME,
  rule: states job state
  rule: final job state
  rule: digits GUID start_ledger
  rule: digits activity root_ledger
  CHECK (pruned_at IS NULL OR completed_at IS NOT NULL),
  CHECK (ready_at IS NULL OR completed_at IS NULL)
S|) STRICT;
P|) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- Only what may be claimed is in this index, so a claim costs the same whatever has piled up elsewhere.
S|CREATE INDEX jobs_to_claim ON jobs (queue, priority, ready_at) WHERE ready_at IS NOT NULL AND hold IS NULL;
S|CREATE INDEX jobs_by_deadline ON jobs (deadline_at) WHERE deadline_at IS NOT NULL AND completed_at IS NULL;
S|CREATE INDEX jobs_of_parent ON jobs (parent_job_id, parent_step) WHERE parent_job_id IS NOT NULL;
S|CREATE INDEX jobs_open_children ON jobs (parent_job_id)
S|  WHERE parent_job_id IS NOT NULL AND completed_at IS NULL AND detached = 0;
S|CREATE INDEX jobs_to_cancel ON jobs (cancel_at) WHERE state = 'CANCELLING';
S|CREATE INDEX jobs_dead ON jobs (tenant_id, job_id) WHERE state = 'FAILED_FINAL' AND retried_as IS NULL;
P|CREATE INDEX jobs_to_claim ON jobs (queue, priority, ready_at, job_id)
P|  WHERE ready_at IS NOT NULL AND hold IS NULL;
P|-- No index below mentions a column that every job changes when it ends: not even as a condition.
P|CREATE INDEX jobs_by_deadline ON jobs (open_deadline) WHERE open_deadline IS NOT NULL;
P|CREATE INDEX jobs_of_parent ON jobs (parent_job_id, parent_step, job_id) WHERE parent_job_id IS NOT NULL;
P|CREATE INDEX jobs_open_children ON jobs (open_parent) WHERE open_parent IS NOT NULL;
P|CREATE INDEX jobs_to_cancel ON jobs (asked_at) WHERE asked_at IS NOT NULL;
P|CREATE INDEX jobs_dead ON jobs (tenant_id, dead) WHERE dead IS NOT NULL;
CREATE INDEX jobs_hook_due ON jobs (hook_due) WHERE hook_due IS NOT NULL;
-- What waits for a person, apart from all that does not.
CREATE INDEX jobs_held ON jobs (job_id) WHERE hold IS NOT NULL;
CREATE INDEX jobs_held_of ON jobs (tenant_id, job_id) WHERE hold IS NOT NULL;
CREATE INDEX jobs_held_as ON jobs (hold, tenant_id, job_id) WHERE hold IS NOT NULL;
-- What has an error to be searched by; a job that succeeds never comes here.
CREATE INDEX jobs_failing ON jobs (tenant_id, job_id) WHERE error_message IS NOT NULL;
-- Of queues with limits: new jobs by their keys, and those that have begun. Other jobs are in neither.
CREATE INDEX jobs_of_key ON jobs (queue, limit_key, priority, ready_at)
  WHERE limit_key IS NOT NULL AND began_in IS NULL AND ready_at IS NOT NULL AND hold IS NULL;
CREATE INDEX jobs_begun ON jobs (began_in, ready_at)
  WHERE began_in IS NOT NULL AND ready_at IS NOT NULL AND hold IS NULL;

-- The tags of a job again, to find it by. They follow from `jobs.tags` and go with the job.
CREATE TABLE job_tags (
  tag    NAME NOT NULL,
S|  job_id TEXT NOT NULL,
P|  job_id TEXT COLLATE "C" NOT NULL REFERENCES jobs ON DELETE CASCADE,
  PRIMARY KEY (tag, job_id)
S|) STRICT, WITHOUT ROWID;
P|);

S|CREATE TRIGGER jobs_tagged AFTER INSERT ON jobs WHEN NEW.tags IS NOT NULL
S|BEGIN INSERT OR IGNORE INTO job_tags (tag, job_id) SELECT tag.value, NEW.job_id FROM json_each(NEW.tags) AS tag; END;

S|CREATE TRIGGER jobs_untagged AFTER DELETE ON jobs WHEN OLD.tags IS NOT NULL
S|BEGIN DELETE FROM job_tags WHERE job_id = OLD.job_id AND tag IN (SELECT tag.value FROM json_each(OLD.tags) AS tag); END;

P|CREATE INDEX job_tags_of_job ON job_tags (job_id);

P|CREATE FUNCTION note_tags() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
P|BEGIN
P|  INSERT INTO job_tags (tag, job_id) SELECT DISTINCT tag, NEW.job_id FROM jsonb_array_elements_text(NEW.tags::jsonb) AS tag;
P|  RETURN NULL;
P|END $$;

P|CREATE TRIGGER jobs_tagged AFTER INSERT ON jobs FOR EACH ROW WHEN (NEW.tags IS NOT NULL) EXECUTE FUNCTION note_tags();

-- What a job shows while it runs, the last value of each name. Nothing is decided by it; it is no fact and has no history.
CREATE TABLE job_values (
  job_id     NAME NOT NULL,
  name       NAME NOT NULL,
  value      TEXT NOT NULL,
  rev        INT NOT NULL DEFAULT 1,
  attempt    INT NOT NULL,
  changed_at INT NOT NULL,
  PRIMARY KEY (job_id, name)
S|) STRICT, WITHOUT ROWID;
P|) WITH (fillfactor = 70);

-- The workers of now: each writes a row of itself now and then, and removes it when it stops.
CREATE TABLE workers (
  owner      NAME NOT NULL PRIMARY KEY,
  host       TEXT NOT NULL,
  pid        INT NOT NULL,
  version    TEXT NOT NULL,
  queues     TEXT NOT NULL,
  slots      INT NOT NULL,
  running    INT NOT NULL,
  started_at INT NOT NULL,
  heard_at   INT NOT NULL,
  -- Roles whose last turn failed, and why, as a JSON object.
  failing    TEXT NOT NULL DEFAULT '{}'
S|) STRICT, WITHOUT ROWID;
P|) WITH (fillfactor = 70);

-- How many jobs each worker has ended, by minute and state; for graphs, and kept for some days.
CREATE TABLE ended_by_minute (
  minute INT NOT NULL,
  owner  NAME NOT NULL,
  state  NAME NOT NULL,
  ended  INT NOT NULL CHECK (ended > 0),
  PRIMARY KEY (minute, owner, state)
S|) STRICT, WITHOUT ROWID;
P|);

-- Keys of clients over HTTP: the secret is kept as its hash alone. Scopes and services are JSON lists.
CREATE TABLE api_keys (
  kid         NAME NOT NULL PRIMARY KEY,
  tenant_id   NAME NOT NULL,
  scopes      TEXT NOT NULL,
  services    TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  created_at  INT NOT NULL,
  expires_at  INT,
  revoked_at  INT
S|) STRICT, WITHOUT ROWID;
P|);

CREATE TABLE attempts (
  job_id           NAME NOT NULL,
  unit             NAME NOT NULL DEFAULT '',
  attempt          INT NOT NULL CHECK (attempt >= 1),
  status           NAME NOT NULL,
  lease_id         NAME NOT NULL,
  lease_epoch      NAME NOT NULL,
  lease_expires_at INT NOT NULL,
  lease_owner      TEXT NOT NULL,
  reason           TEXT,
  charged          INT NOT NULL DEFAULT 0 CHECK (charged IN (0, 1)),
  guid             NAME NOT NULL DEFAULT 'start',
  started_at       INT,
  finished_at      INT,
S|  exec_id          TEXT GENERATED ALWAYS AS (job_id || ':' || unit || ':' || attempt) VIRTUAL,
  rule: states attempt status
  CHECK ((status = 'ABORTED') = (reason IS NOT NULL)),
  PRIMARY KEY (job_id, unit, attempt)
S|) STRICT, WITHOUT ROWID;
P|) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- While an attempt is committed and not done no other begins: the work is finished from there, never done again.
S|-- Not as a list: of three words or more SQLite makes a table for every row that it asks.
S|CREATE UNIQUE INDEX attempts_one_live ON attempts (job_id, unit)
S|WHERE status = 'LEASED' OR status = 'IN_PROGRESS' OR status = 'COMMITTED';
P|CREATE UNIQUE INDEX attempts_one_live ON attempts (job_id, unit) WHERE status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED');
CREATE UNIQUE INDEX attempts_one_committed ON attempts (job_id, unit) WHERE status IN ('COMMITTED', 'DONE');

-- An attempt at an effect that came to a key which another attempt has names that one, and its job waits for it.
CREATE INDEX attempts_that_wait ON attempts (guid) WHERE reason = 'DUPLICATE_COMMIT';

P|-- A sweep looks through `attempts_one_live`: it holds only what runs now. The end of a lease is in no index, so that a
P|-- heartbeat touches none.

P|-- The name of an attempt, as specification 002 spells it: `SELECT attempts.exec_id FROM attempts`.
P|CREATE FUNCTION exec_id(attempts) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
P|  SELECT $1.job_id || ':' || $1.unit || ':' || $1.attempt
P|$$;

-- The home of the keys of effects, one row for each attempt: written with the intent, before the call, and kept when its job is
-- gone. A key is taken while its outcome is unknown, and for ever when it has happened.
CREATE TABLE effect_keys (
  exec_id    NAME NOT NULL PRIMARY KEY,
  tenant_id  NAME NOT NULL,
  effect     NAME NOT NULL,
  key        NAME NOT NULL,
  args_hash  NAME NOT NULL,
  job_id     NAME NOT NULL,
  unit       NAME NOT NULL,
  attempt    INT NOT NULL,
  state      NAME NOT NULL,
  phase      NAME NOT NULL CHECK (one of: phase CALLING RESTING IN_DOUBT ENDED),
  outcome    NAME CHECK (one of: outcome HAPPENED REFUSED NOT_DONE),
  arguments  TEXT NOT NULL,
  result     TEXT,
  error      TEXT,
  options    TEXT NOT NULL,
  lease_id   NAME NOT NULL,
  calls      INT NOT NULL CHECK (calls >= 1),
  probes     INT NOT NULL DEFAULT 0,
  due_at     INT,
  doubt      TEXT,
  called_at  INT NOT NULL,
  created_at INT NOT NULL,
  ended_at   INT,
  ended_by   TEXT,
  rev        INT NOT NULL DEFAULT 1,
  kept       INT NOT NULL DEFAULT 0,
  rule: states attempt state
  CHECK ((state = 'DONE') = (outcome IS NOT NULL)),
  CHECK ((phase = 'ENDED') = (outcome IS NOT NULL)),
  CHECK ((ended_at IS NULL) = (outcome IS NULL))
S|) STRICT, WITHOUT ROWID;
P|) WITH (fillfactor = 70);

CREATE UNIQUE INDEX effect_keys_occupied ON effect_keys (tenant_id, effect, key)
WHERE outcome IS NULL OR outcome = 'HAPPENED' OR kept = 1;
CREATE INDEX effect_keys_open ON effect_keys (tenant_id, key) WHERE outcome IS NULL;
CREATE INDEX effect_keys_ended ON effect_keys (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX effect_keys_ended_of ON effect_keys (tenant_id, ended_at, exec_id) WHERE ended_at IS NOT NULL;
CREATE INDEX effect_keys_of_job ON effect_keys (job_id);
CREATE INDEX effect_keys_due ON effect_keys (due_at) WHERE due_at IS NOT NULL;

-- Steps and events are appended by many jobs at once: in the order of writing a flush touches few pages.
CREATE TABLE steps (
  job_id             NAME NOT NULL,
  dimension          INT NOT NULL DEFAULT 0,
  name               NAME NOT NULL,
  occurrence         INT NOT NULL DEFAULT 1 CHECK (occurrence >= 1),
  kind               NAME NOT NULL CHECK (one of: kind step tx effect remote wait sleep group protocol),
  state              NAME NOT NULL,
  ledger             INT NOT NULL DEFAULT 0,
  n                  INT,
  attempt            INT,
  created_at         INT NOT NULL,
  completed_at       INT,
  result             TEXT,
  error              TEXT,
  notes              TEXT,
  prev_hash          HASH,
  event_hash         HASH,
  origin_job_id      NAME,
  origin_dimension   INT,
  semaphore          INT CHECK (semaphore >= 0),
  threshold          INT,
  failed             INT,
S|  step_id            TEXT GENERATED ALWAYS AS (name || '#' || occurrence) VIRTUAL,
  step_index         INT,
  step_type          TEXT,
  service            TEXT,
  attempt_no         INT,
  lease_id           NAME,
  lease_expires_at   INT,
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
  updated_at         INT,
  rev                INT NOT NULL DEFAULT 1,
  -- Of steps that stood at one place in an older file, those behind the first are left out of the key; `doctor` tells.
  misplaced          INT CHECK (misplaced = 1),
  -- Of a remote step: when its worker was first heard of, and the answers that were accepted, one for each attempt.
  acked_at           INT,
  answers            TEXT,
  -- Of a remote step in a workflow: the rules that it was declared with (timeouts, tries, publisher).
  options            TEXT,
  rule: states step state
  rule: final step state
  rule: digits activity ledger
  -- A row that is its own event is written once, already ended.
  CHECK (n IS NULL OR state IN ('SUCCEEDED', 'FAILED_FINAL')),
  -- A copy in a fork knows the row that was written when it happened.
  CHECK ((origin_job_id IS NULL) = (origin_dimension IS NULL)),
  PRIMARY KEY (job_id, dimension, name, occurrence)
S|) STRICT;
P|);

P|-- The name of a step, as specification 001 spells it: `SELECT steps.step_id FROM steps`.
P|CREATE FUNCTION step_id(steps) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$ SELECT $1.name || '#' || $1.occurrence $$;

CREATE UNIQUE INDEX steps_one_in_progress ON steps (job_id) WHERE kind = 'protocol' AND state = 'IN_PROGRESS';
-- Whose records the forks of a job have: what retention must ask before it removes one.
CREATE INDEX steps_copied ON steps (origin_job_id) WHERE origin_job_id IS NOT NULL;
-- A place in a job's chain is taken once, be it by a step or by an event: a key on each table, and a guard below.
CREATE UNIQUE INDEX steps_places ON steps (job_id, n) WHERE n IS NOT NULL AND misplaced IS NULL;
-- What is open, apart from all that is over: a wait, a wake-up, a claim or a turn looks at the former.
CREATE INDEX steps_open ON steps (job_id, name) WHERE completed_at IS NULL;
-- Remote steps by the instant at which the sweep looks after them; one that has ended has none.
CREATE INDEX steps_due ON steps (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
-- Remote steps whose directive was given to a worker that has not acknowledged it.
CREATE INDEX steps_awaiting_ack ON steps (state) WHERE state = 'AWAITING_ACK';

-- Attempts that are charged to the budget: those since the job last recorded anything, or came to a wait or a turn. Found
-- from the newest attempt backwards; steps of earlier turns were recorded before the turn was over.
CREATE VIEW futile_attempts (job_id, attempt, reason) AS
SELECT home.job_id, a.attempt, a.reason
S|  FROM jobs AS home CROSS JOIN attempts AS a
S| WHERE a.job_id = home.job_id AND a.unit = '' AND a.charged = 1
S|   AND a.attempt > coalesce((SELECT w.attempt
S|                               FROM attempts AS w
S|                              WHERE w.job_id = home.job_id AND w.unit = '' AND w.reason = 'SUSPENDED'
S|                              ORDER BY w.attempt DESC
S|                              LIMIT 1), 0)
S|   AND a.attempt >= coalesce((SELECT max(s.attempt)
P|  FROM jobs AS home
P| CROSS JOIN LATERAL (
P|       SELECT attempts.attempt, attempts.reason
P|         FROM attempts
P|        WHERE attempts.job_id = home.job_id AND attempts.unit = '' AND attempts.charged = 1
P|          AND attempts.attempt > coalesce((SELECT w.attempt
P|                                             FROM attempts AS w
P|                                            WHERE w.job_id = home.job_id AND w.unit = '' AND w.reason = 'SUSPENDED'
P|                                            ORDER BY w.attempt DESC
P|                                            LIMIT 1), 0)
P|       OFFSET 0) AS a
P| WHERE a.attempt >= coalesce((SELECT max(s.attempt)
                                FROM steps AS s
                               WHERE s.job_id = home.job_id AND s.dimension = home.dimension), 0);

CREATE TABLE messages (
  guid         NAME NOT NULL PRIMARY KEY,
  job_id       NAME NOT NULL,
  dimension    INT NOT NULL DEFAULT 0,
  name         NAME NOT NULL,
  occurrence   INT,
  kind         NAME NOT NULL CHECK (one of: kind start signal timer child result resume),
  payload      TEXT,
  due_at       INT,
  ledger       INT NOT NULL DEFAULT 0,
  redeliveries INT NOT NULL DEFAULT 0,
  created_at   INT NOT NULL,
  arrived      INT NOT NULL DEFAULT 0,
  acked_at     INT,
  rule: digits GUID ledger
  CHECK (redeliveries >= 0)
S|) STRICT, WITHOUT ROWID;
P|) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

S|CREATE INDEX messages_inbox ON messages (job_id, arrived) WHERE acked_at IS NULL;
P|-- Only a search for the newest arrival may take this one: it would do for any message, after reading all others.
P|CREATE INDEX messages_inbox ON messages (job_id, arrived) WHERE acked_at IS NULL AND arrived >= 0;
S|CREATE INDEX messages_of_job ON messages (job_id);
P|-- Only a read of all that ever arrived for a job may take this one, for the same reason; such a read says the condition too.
P|CREATE INDEX messages_of_job ON messages (job_id) WHERE redeliveries >= 0;
CREATE INDEX messages_waiting ON messages (job_id, kind, name, arrived) WHERE acked_at IS NULL;
CREATE INDEX messages_begun ON messages (job_id) WHERE acked_at IS NULL AND ledger > 0;

-- What a job claims about its own history, and what else there is to read of it: activities that have not ended, the
-- newest attempt that has written one, and whether it has activities or messages at all.
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
S|       OR EXISTS (SELECT 1 FROM messages WHERE messages.job_id = jobs.job_id) AS has_waited,
P|       OR EXISTS (SELECT 1 FROM messages WHERE messages.job_id = jobs.job_id AND messages.redeliveries >= 0) AS has_waited,
       updated_at
  FROM jobs;

CREATE TABLE events (
  job_id     NAME NOT NULL,
  n          INT NOT NULL CHECK (n >= 1),
  type       TEXT NOT NULL,
  at         INT NOT NULL,
  attempt    INT NOT NULL,
  payload    TEXT NOT NULL,
  prev_hash  HASH NOT NULL,
  event_hash HASH NOT NULL,
  PRIMARY KEY (job_id, n)
S|) STRICT;
P|);

CREATE TABLE outbox (
  outbox_id        NAME NOT NULL PRIMARY KEY,
  tenant_id        NAME NOT NULL,
  job_id           NAME NOT NULL,
  step_id          TEXT NOT NULL,
  attempt_no       INT NOT NULL,
  lease_id         NAME NOT NULL,
  state            NAME NOT NULL,
  topic            TEXT NOT NULL,
  partition        TEXT,
  payload          TEXT NOT NULL,
  resolved_mode    TEXT,
  lane             TEXT,
  routing_key_used TEXT,
  decision_source  TEXT,
  decision_reason  TEXT,
  tries            INT NOT NULL DEFAULT 0,
  next_try_at      INT,
  created_at       INT NOT NULL,
  sent_at          INT,
  updated_at       INT NOT NULL,
  rev              INT NOT NULL DEFAULT 1,
  -- Who it is for, how it travels, which remote worker asked for it, and why it never went.
  service          NAME NOT NULL DEFAULT '',
  via              NAME NOT NULL DEFAULT 'pull',
  taken_by         TEXT,
  reason           TEXT,
  rule: states outbox state
  CHECK ((state = 'SENT') = (sent_at IS NOT NULL))
S|) STRICT, WITHOUT ROWID;
P|) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX outbox_of_job ON outbox (job_id);
-- What a relay may take for an endpoint.
CREATE INDEX outbox_to_publish ON outbox (via, next_try_at) WHERE state = 'PENDING' AND via <> 'pull';
-- What remote workers of a service may ask for: those for all tenants, and those of one, who read nothing of the others.
CREATE INDEX outbox_of_service ON outbox (service, next_try_at) WHERE state = 'PENDING' AND via = 'pull';
CREATE INDEX outbox_of_tenant ON outbox (tenant_id, service, next_try_at) WHERE state = 'PENDING' AND via = 'pull';
-- What never went, for people: dead letters, and what was withdrawn.
CREATE INDEX outbox_never_sent ON outbox (outbox_id) WHERE state = 'FAILED_FINAL';

-- A schedule has the tick that comes next; what it was is seen in the jobs that it made. A change replaces the row, guarded by
-- its revision. It is due when it has an instant for that: not while it is paused or held.
CREATE TABLE schedules (
  schedule_id NAME NOT NULL PRIMARY KEY,
  tenant_id   NAME NOT NULL,
  handler     NAME NOT NULL,
  version     NAME NOT NULL,
  payload     TEXT NOT NULL,
  instant_as  TEXT,
  options     TEXT NOT NULL,
  timetable   TEXT NOT NULL,
  missed      NAME NOT NULL CHECK (one of: missed skip last all),
  overlap     NAME NOT NULL CHECK (one of: overlap allow skip cancel_old),
  jitter_ms   INT NOT NULL CHECK (jitter_ms >= 0),
  declared    INT NOT NULL CHECK (declared IN (0, 1)),
  next_at     INT,
  due_at      INT,
  paused_by   TEXT,
  hold_reason TEXT,
  last_at     INT,
  last_job_id TEXT,
  created_at  INT NOT NULL,
  rev         INT NOT NULL,
  waits_since INT,
  CHECK (due_at IS NULL OR (next_at IS NOT NULL AND paused_by IS NULL AND hold_reason IS NULL))
S|) STRICT, WITHOUT ROWID;
P|);

CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;

-- A queue with a row is claimed by its limits: what a program declares, and what a person has set, which wins. `turn` is the
-- key that was served last; the bucket of the rate is full again at `full_us`, in microseconds by the store's clock.
CREATE TABLE queues (
  queue      NAME NOT NULL PRIMARY KEY,
  declared   TEXT,
  chosen     TEXT,
  paused_by  TEXT,
  paused_at  INT,
  created_at INT NOT NULL,
  rev        INT NOT NULL,
  turn       NAME NOT NULL DEFAULT '',
  full_us    INT NOT NULL DEFAULT 0,
  CHECK ((paused_by IS NULL) = (paused_at IS NULL))
S|) STRICT, WITHOUT ROWID;
P|) WITH (fillfactor = 70);

-- The slots of such queues. One counts while its attempt has not ended; if it `holds`, while its job has not. The next claim
-- removes the others.
CREATE TABLE queue_slots (
  job_id    NAME NOT NULL PRIMARY KEY,
  queue     NAME NOT NULL,
  limit_key NAME NOT NULL,
  attempt   INT NOT NULL,
  owner     TEXT NOT NULL,
  holds     INT NOT NULL CHECK (holds IN (0, 1))
S|) STRICT, WITHOUT ROWID;
P|) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX queue_slots_of_queue ON queue_slots (queue);

-- The buckets of keys with a rate; one that is not here is full.
CREATE TABLE queue_buckets (
  queue     NAME NOT NULL,
  limit_key NAME NOT NULL,
  full_us   INT NOT NULL,
  PRIMARY KEY (queue, limit_key)
S|) STRICT, WITHOUT ROWID;
P|) WITH (fillfactor = 70);

CREATE INDEX queue_buckets_full ON queue_buckets (queue, full_us);

CREATE TABLE stale_reports (
S|  id       INTEGER PRIMARY KEY,
P|  id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       INT NOT NULL,
  job_id   NAME NOT NULL,
  attempt  INT NOT NULL,
  lease_id NAME NOT NULL,
  report   TEXT NOT NULL
S|) STRICT;
P|);

-- What people did to jobs, queues and schedules, and who it was, in a chain over the whole store. What was said to a job goes with
-- it, and is empty then; its line stays, so that the chain does.
CREATE TABLE acts (
  seq        INT NOT NULL PRIMARY KEY CHECK (seq >= 1),
  at         INT NOT NULL,
  about      NAME NOT NULL CHECK (one of: about job queue schedule),
  name       NAME NOT NULL,
  verb       TEXT NOT NULL,
  who        TEXT NOT NULL,
  told       TEXT NOT NULL,
  said_hash  TEXT NOT NULL,
  prev_hash  TEXT NOT NULL,
  event_hash TEXT NOT NULL
S|) STRICT;
P|);

CREATE INDEX acts_of ON acts (name, about, seq);
CREATE INDEX acts_about ON acts (about, seq) WHERE who <> '';

S|CREATE TRIGGER acts_guard BEFORE UPDATE ON acts
S|WHEN NOT (NEW.verb = '' AND NEW.who = '' AND NEW.told = '' AND OLD.about = 'job'
S|          AND (NEW.seq, NEW.at, NEW.about, NEW.name, NEW.said_hash, NEW.prev_hash, NEW.event_hash)
S|              = (OLD.seq, OLD.at, OLD.about, OLD.name, OLD.said_hash, OLD.prev_hash, OLD.event_hash)
S|          AND EXISTS (SELECT 1 FROM jobs WHERE job_id = OLD.name AND pruned_at IS NOT NULL))
S|BEGIN SELECT RAISE(ABORT, 'FINAL: an act is a fact and cannot change'); END;
S|CREATE TRIGGER acts_delete BEFORE DELETE ON acts
S|BEGIN SELECT RAISE(ABORT, 'DELETE: what people did is remembered'); END;
P|CREATE FUNCTION refuse_another_act() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
P|BEGIN
P|  IF NEW.verb = '' AND NEW.who = '' AND NEW.told = '' AND OLD.about = 'job'
P|     AND (NEW.seq, NEW.at, NEW.about, NEW.name, NEW.said_hash, NEW.prev_hash, NEW.event_hash)
P|         = (OLD.seq, OLD.at, OLD.about, OLD.name, OLD.said_hash, OLD.prev_hash, OLD.event_hash)
P|     AND EXISTS (SELECT 1 FROM jobs WHERE job_id = OLD.name AND pruned_at IS NOT NULL) THEN
P|    RETURN NEW;
P|  END IF;
P|  RAISE EXCEPTION 'FINAL: an act is a fact and cannot change'
P|    USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
P|END $$;
P|CREATE TRIGGER acts_guard BEFORE UPDATE ON acts FOR EACH ROW EXECUTE FUNCTION refuse_another_act();
P|CREATE TRIGGER acts_delete BEFORE DELETE ON acts FOR EACH ROW
P|EXECUTE FUNCTION refuse_change('DELETE: what people did is remembered');
P|CREATE TRIGGER acts_truncate BEFORE TRUNCATE ON acts
P|EXECUTE FUNCTION refuse_change('DELETE: what people did is remembered');

-- What was removed by right: the job, whole or up to a turn, its last fact that is gone with its hash, when it was born, when it
-- went and its author. Only ever appended, and chained over the whole store, so that a removal can be told from a loss.
-- `keys` is a print of the keys of effects that it leaves, or lists those that it removes; lines of older versions have none.
CREATE TABLE pruned (
  seq         INT NOT NULL PRIMARY KEY CHECK (seq >= 1),
  job_id      NAME NOT NULL,
  whole       INT NOT NULL CHECK (whole IN (0, 1)),
  dimension   INT NOT NULL,
  last_n      INT NOT NULL,
  head_hash   TEXT NOT NULL,
  born_at     INT NOT NULL,
  at          INT NOT NULL,
  who         TEXT NOT NULL,
  prev_hash   TEXT NOT NULL,
  event_hash  TEXT NOT NULL,
  keys        TEXT
S|) STRICT;
P|);

CREATE INDEX pruned_of_job ON pruned (job_id, seq);
CREATE INDEX pruned_with_keys ON pruned (job_id) WHERE keys <> '';

S|CREATE TRIGGER pruned_guard BEFORE UPDATE ON pruned
S|BEGIN SELECT RAISE(ABORT, 'FINAL: a removal is a fact and cannot change'); END;
S|CREATE TRIGGER pruned_delete BEFORE DELETE ON pruned
S|BEGIN SELECT RAISE(ABORT, 'DELETE: what was removed is remembered'); END;
P|CREATE TRIGGER pruned_guard BEFORE UPDATE ON pruned FOR EACH ROW
P|EXECUTE FUNCTION refuse_change('FINAL: a removal is a fact and cannot change');
P|CREATE TRIGGER pruned_delete BEFORE DELETE ON pruned FOR EACH ROW
P|EXECUTE FUNCTION refuse_change('DELETE: what was removed is remembered');
P|CREATE TRIGGER pruned_truncate BEFORE TRUNCATE ON pruned
P|EXECUTE FUNCTION refuse_change('DELETE: what was removed is remembered');

S|-- How far the clock of this file is ahead of the boot clock of its machine, in the boot that `epoch` names. It never
S|-- falls while that boot lasts, so a wall clock that is set back delays no job. One row.
S|CREATE TABLE clock (
S|  id    INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
S|  epoch TEXT NOT NULL,
S|  ahead INTEGER NOT NULL
S|) STRICT;

-- Illegal changes are refused here too, even for an UPDATE by hand: what has ended stays as it ended, states move as
-- their lifecycle lists, ledgers only grow. A final job may still learn which job took its place, and be pruned.

rule: births job jobs.state
rule: births outbox outbox.state
-- An attempt is one at a job that is there, and begins before it ends.
S|rule: births attempt attempts.status.jobs
P|rule: births attempt attempts.status
P|ALTER TABLE attempts ADD CONSTRAINT attempts_of_a_job FOREIGN KEY (job_id) REFERENCES jobs NOT VALID;

S|CREATE TRIGGER jobs_guard AFTER UPDATE OF
P|CREATE TRIGGER jobs_guard BEFORE UPDATE OF
  job_id, state, attempt, ready_at, hold, semaphore, root_ledger, ledger_form, start_ledger, start_redeliveries,
  start_acked_at, head_n, head_hash, completed_at, kind, handler, version, dimension, created_at, payload, options, result,
  error, error_code, error_message, tenant_id, idempotency_key, idempotency_hash, parent_job_id, parent_step, retry_of
S|ON jobs
S|rule: guard job jobs.state.start_ledger.root_ledger
P|ON jobs FOR EACH ROW WHEN (OLD.completed_at IS NOT NULL)
P|EXECUTE FUNCTION refuse_change('FINAL: this job has ended and cannot change');
P|rule: moves job jobs.state.start_ledger
P|CREATE TRIGGER jobs_root_ledger BEFORE UPDATE ON jobs FOR EACH ROW WHEN (NEW.root_ledger < OLD.root_ledger)
P|EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');

S|CREATE TRIGGER attempts_guard AFTER UPDATE ON attempts
P|CREATE TRIGGER attempts_guard BEFORE UPDATE ON attempts FOR EACH ROW
rule: guard attempt attempts.status

S|CREATE TRIGGER effect_keys_guard AFTER UPDATE ON effect_keys
P|CREATE TRIGGER effect_keys_guard BEFORE UPDATE ON effect_keys FOR EACH ROW
rule: guard attempt effect_keys.state
S|CREATE TRIGGER effect_keys_delete BEFORE DELETE ON effect_keys WHEN OLD.outcome IS NULL
S|BEGIN SELECT RAISE(ABORT, 'DELETE: nobody knows yet what came of this effect'); END;
P|CREATE TRIGGER effect_keys_delete BEFORE DELETE ON effect_keys FOR EACH ROW WHEN (OLD.outcome IS NULL)
P|EXECUTE FUNCTION refuse_change('DELETE: nobody knows yet what came of this effect');

-- The state of a wait or a group ends with step 1 of its message; after that its row may learn steps 2 and 3, each once.
S|CREATE TRIGGER steps_guard AFTER UPDATE OF
S|  job_id, dimension, name, occurrence, kind, state, n, attempt, created_at, completed_at, result, error, notes, prev_hash,
S|  event_hash, origin_job_id, origin_dimension, semaphore, threshold, failed, step_index, step_type, service, attempt_no,
S|  lease_id, lease_expires_at, input_ref, workspace_ref, output_ref, payload, resolved_mode, lane, routing_key_used,
S|  decision_source, decision_reason, last_error_code, last_error_message, updated_at, misplaced, acked_at, answers, options
S|ON steps
S|rule: guard step steps.state
P|CREATE TRIGGER steps_guard BEFORE UPDATE ON steps FOR EACH ROW
P|WHEN (OLD.state = ANY ('{SUCCEEDED,FAILED_FINAL,CANCELLED}') AND
P|      ROW (NEW.job_id, NEW.dimension, NEW.name, NEW.occurrence, NEW.kind, NEW.state, NEW.n, NEW.attempt, NEW.created_at,
P|           NEW.completed_at, NEW.result, NEW.error, NEW.notes, NEW.prev_hash, NEW.event_hash, NEW.origin_job_id,
P|           NEW.origin_dimension, NEW.semaphore, NEW.threshold, NEW.failed, NEW.step_index, NEW.step_type, NEW.service,
P|           NEW.attempt_no, NEW.lease_id, NEW.lease_expires_at, NEW.input_ref, NEW.workspace_ref, NEW.output_ref, NEW.payload,
P|           NEW.resolved_mode, NEW.lane, NEW.routing_key_used, NEW.decision_source, NEW.decision_reason, NEW.last_error_code,
P|           NEW.last_error_message, NEW.updated_at, NEW.misplaced, NEW.acked_at, NEW.answers, NEW.options)
P|      IS DISTINCT FROM
P|      ROW (OLD.job_id, OLD.dimension, OLD.name, OLD.occurrence, OLD.kind, OLD.state, OLD.n, OLD.attempt, OLD.created_at,
P|           OLD.completed_at, OLD.result, OLD.error, OLD.notes, OLD.prev_hash, OLD.event_hash, OLD.origin_job_id,
P|           OLD.origin_dimension, OLD.semaphore, OLD.threshold, OLD.failed, OLD.step_index, OLD.step_type, OLD.service,
P|           OLD.attempt_no, OLD.lease_id, OLD.lease_expires_at, OLD.input_ref, OLD.workspace_ref, OLD.output_ref, OLD.payload,
P|           OLD.resolved_mode, OLD.lane, OLD.routing_key_used, OLD.decision_source, OLD.decision_reason, OLD.last_error_code,
P|           OLD.last_error_message, OLD.updated_at, OLD.misplaced, OLD.acked_at, OLD.answers, OLD.options))
P|EXECUTE FUNCTION refuse_change('FINAL: this step has ended and cannot change');
P|rule: moves step steps.state.ledger

S|CREATE TRIGGER steps_learn AFTER UPDATE OF ledger, rev ON steps
P|CREATE TRIGGER steps_learn BEFORE UPDATE ON steps FOR EACH ROW
rule: learns step steps.state.ledger

S|CREATE TRIGGER outbox_guard AFTER UPDATE ON outbox
P|CREATE TRIGGER outbox_guard BEFORE UPDATE ON outbox FOR EACH ROW
rule: guard outbox outbox.state

S|CREATE TRIGGER messages_guard AFTER UPDATE OF ledger ON messages WHEN NEW.ledger < OLD.ledger
S|BEGIN SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases'); END;
P|CREATE TRIGGER messages_guard BEFORE UPDATE ON messages FOR EACH ROW WHEN (NEW.ledger < OLD.ledger)
P|EXECUTE FUNCTION refuse_change('LEDGER: a ledger never decreases');

S|CREATE TRIGGER events_guard AFTER UPDATE ON events
S|BEGIN SELECT RAISE(ABORT, 'FINAL: an event is a fact and cannot change'); END;
P|CREATE TRIGGER events_guard BEFORE UPDATE ON events FOR EACH ROW
P|EXECUTE FUNCTION refuse_change('FINAL: an event is a fact and cannot change');

-- Steps are written under a fence, and the statements that insert them look for an event at their place too. The writer for
-- a job holds its attempt, its row or the file, so no other comes in between.
S|CREATE TRIGGER steps_placed AFTER UPDATE OF n ON steps
S|WHEN EXISTS (SELECT 1 FROM events WHERE job_id = NEW.job_id AND n = NEW.n)
S|BEGIN SELECT RAISE(ABORT, 'PLACE: an event stands at this place of the chain'); END;

S|CREATE TRIGGER events_place AFTER INSERT ON events
S|WHEN NEW.n > 2 AND EXISTS (SELECT 1 FROM steps WHERE job_id = NEW.job_id AND n = NEW.n AND misplaced IS NULL)
S|BEGIN SELECT RAISE(ABORT, 'PLACE: a step stands at this place of the chain'); END;

P|CREATE FUNCTION refuse_place_of_event() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
P|BEGIN
P|  IF EXISTS (SELECT 1 FROM events WHERE events.job_id = NEW.job_id AND events.n = NEW.n) THEN
P|    RAISE EXCEPTION 'PLACE: an event stands at this place of the chain'
P|      USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
P|  END IF;
P|  RETURN NULL;
P|END $$;

P|CREATE FUNCTION refuse_place_of_step() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
P|BEGIN
P|  IF EXISTS (SELECT 1
P|               FROM steps
P|              WHERE steps.job_id = NEW.job_id AND steps.n = NEW.n AND steps.misplaced IS NULL) THEN
P|    RAISE EXCEPTION 'PLACE: a step stands at this place of the chain'
P|      USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
P|  END IF;
P|  RETURN NULL;
P|END $$;

P|CREATE TRIGGER steps_placed AFTER UPDATE OF n ON steps FOR EACH ROW WHEN (NEW.n IS NOT NULL)
P|EXECUTE FUNCTION refuse_place_of_event();

P|-- The first two places are those of the submission and of the first claim. The two statements that write a return look for
P|-- a step at its place too: every job that ends well would pay for this.
P|CREATE TRIGGER events_place AFTER INSERT ON events FOR EACH ROW WHEN (NEW.n > 2 AND NEW.type <> 'return')
P|EXECUTE FUNCTION refuse_place_of_step();

-- Retention marks a final job as pruned, then removes its books, children first. Of a job that goes on, turns may go whose
-- removal is written down first. Nothing else is ever deleted, and so nothing can be replaced.

S|CREATE TRIGGER jobs_delete BEFORE DELETE ON jobs WHEN OLD.pruned_at IS NULL
S|BEGIN SELECT RAISE(ABORT, 'DELETE: this job is not pruned'); END;
P|CREATE TRIGGER jobs_delete BEFORE DELETE ON jobs FOR EACH ROW WHEN (OLD.pruned_at IS NULL)
P|EXECUTE FUNCTION refuse_change('DELETE: this job is not pruned');

P|CREATE FUNCTION refuse_unless_pruned() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
P|DECLARE
P|  line pruned%ROWTYPE;
P|BEGIN
P|  IF NOT EXISTS (SELECT 1 FROM jobs WHERE job_id = OLD.job_id AND pruned_at IS NULL) THEN
P|    RETURN OLD;
P|  END IF;
P|  SELECT * INTO line FROM pruned WHERE pruned.job_id = OLD.job_id AND pruned.whole = 0 ORDER BY pruned.seq DESC LIMIT 1;
P|  IF line.seq IS NULL OR TG_TABLE_NAME = 'outbox' THEN
P|    NULL;
P|  ELSIF TG_TABLE_NAME = 'events' THEN
P|    IF OLD.n <= line.last_n THEN
P|      RETURN OLD;
P|    END IF;
P|  ELSIF TG_TABLE_NAME = 'attempts' THEN
P|    IF OLD.attempt <= (SELECT ended.attempt FROM events AS ended WHERE ended.job_id = OLD.job_id AND ended.n = line.last_n) THEN
P|      RETURN OLD;
P|    END IF;
P|  ELSIF OLD.dimension <= line.dimension THEN
P|    IF TG_TABLE_NAME = 'steps' THEN
P|      RETURN OLD;
P|    ELSIF OLD.acked_at IS NOT NULL THEN
P|      RETURN OLD;
P|    END IF;
P|  END IF;
P|  RAISE EXCEPTION 'DELETE: the job of this row is not pruned'
P|    USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
P|END $$;

rule: kept attempt attempts
rule: kept step steps
rule: kept message messages
rule: kept event events
rule: kept directive outbox
P|CREATE TRIGGER jobs_truncate BEFORE TRUNCATE ON jobs
P|EXECUTE FUNCTION refuse_change('DELETE: books are pruned, never emptied');

P|-- Whatever is below these jobs, not detached and not ended is asked to end. Each level is held before the next is looked for:
P|-- what runs there can then start no more children, and its worker does not change. What does not run has no time left.
P|CREATE FUNCTION ask_descendants(
P|  parents TEXT[], before TEXT[], asked TEXT, at BIGINT, ends_at BIGINT, code TEXT
P|) RETURNS VOID LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
P|DECLARE
P|  level TEXT[] := parents;
P|BEGIN
P|  LOOP
P|    SELECT array_agg(held.job_id)
P|      INTO level
P|      FROM (SELECT jobs.job_id FROM jobs WHERE jobs.open_parent = ANY (level) ORDER BY jobs.job_id FOR NO KEY UPDATE) AS held;
P|    EXIT WHEN level IS NULL;
P|    UPDATE jobs
P|       SET state = asked, hold = NULL, hold_reason = NULL, ready_at = NULL, error_code = code, updated_at = at, rev = rev + 1,
P|           cancel_at = CASE WHEN EXISTS (SELECT 1
P|                                           FROM attempts AS live
P|                                          WHERE live.job_id = jobs.job_id AND live.unit = ''
P|                                            AND live.status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED'))
P|                            THEN ends_at ELSE at END
P|     WHERE job_id = ANY (level) AND state = ANY (before);
P|  END LOOP;
P|END $$;

S|-- Step 2 of a message as one statement: an INSERT here moves the semaphore of a job, marks the message and its activity,
S|-- and checks that the semaphore came to zero by this exactly if it was said to; all or nothing.
S|CREATE VIEW semaphore_moves (
S|  job_id, rev, delta, root_ledger, hit, guid, digits, guid_ledger, acked_at, dimension, name, occurrence, activity_rev,
S|  activity_ledger
S|) AS
S|SELECT '', 0, 0, 0, 0, '', 0, 0, 0, 0, '', 0, 0, 0 WHERE 0;

S|CREATE TRIGGER semaphore_moved INSTEAD OF INSERT ON semaphore_moves
S|BEGIN
S|  UPDATE messages
S|     SET ledger = NEW.guid_ledger, acked_at = NEW.acked_at, dimension = NEW.dimension, occurrence = NEW.occurrence
S|   WHERE guid = NEW.guid AND job_id = NEW.job_id AND ledger = NEW.digits AND acked_at IS NULL;
S|  SELECT RAISE(ABORT, 'MARKER: this message has other digits, or is acknowledged') WHERE changes() <> 1;
S|  UPDATE steps
S|     SET ledger = NEW.activity_ledger, rev = rev + 1
S|   WHERE NEW.activity_ledger IS NOT NULL AND job_id = NEW.job_id AND dimension = NEW.dimension AND name = NEW.name
S|     AND occurrence = NEW.occurrence AND rev = NEW.activity_rev;
S|  SELECT RAISE(ABORT, 'MARKER: this activity has moved') WHERE changes() <> (NEW.activity_ledger IS NOT NULL);
S|  UPDATE jobs
S|     SET semaphore = semaphore + NEW.delta, root_ledger = NEW.root_ledger, rev = rev + 1
S|   WHERE job_id = NEW.job_id AND rev = NEW.rev AND completed_at IS NULL AND (semaphore + NEW.delta = 0) = NEW.hit;
S|  SELECT RAISE(ABORT, 'MARKER: this job has moved, or its semaphore is another one') WHERE changes() <> 1;
S|END;
