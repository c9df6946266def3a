-- The home of the keys of effects, one row for each attempt: written with the intent, before the call, and kept when its job is
-- gone. A key is taken while its outcome is unknown, and for ever when it has happened.
CREATE TABLE effect_keys (
  exec_id    TEXT NOT NULL PRIMARY KEY,
  tenant_id  TEXT NOT NULL,
  effect     TEXT NOT NULL,
  key        TEXT NOT NULL,
  args_hash  TEXT NOT NULL,
  job_id     TEXT NOT NULL,
  unit       TEXT NOT NULL,
  attempt    INTEGER NOT NULL,
  state      TEXT NOT NULL,
  phase      TEXT NOT NULL CHECK (phase = 'CALLING' OR phase = 'RESTING' OR phase = 'IN_DOUBT' OR phase = 'ENDED'),
  outcome    TEXT CHECK (outcome = 'HAPPENED' OR outcome = 'REFUSED' OR outcome = 'NOT_DONE'),
  arguments  TEXT NOT NULL,
  result     TEXT,
  error      TEXT,
  options    TEXT NOT NULL,
  lease_id   TEXT NOT NULL,
  calls      INTEGER NOT NULL CHECK (calls >= 1),
  probes     INTEGER NOT NULL DEFAULT 0,
  due_at     INTEGER,
  doubt      TEXT,
  called_at  INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at   INTEGER,
  ended_by   TEXT,
  rev        INTEGER NOT NULL DEFAULT 1,
  -- rule: states attempt state
  CHECK (state = 'LEASED' OR state = 'IN_PROGRESS' OR state = 'COMMITTED' OR state = 'DONE' OR state = 'ABORTED'),
  -- end rule
  CHECK ((state = 'DONE') = (outcome IS NOT NULL)),
  CHECK ((phase = 'ENDED') = (outcome IS NOT NULL)),
  CHECK ((ended_at IS NULL) = (outcome IS NULL))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX effect_keys_occupied ON effect_keys (tenant_id, effect, key) WHERE outcome IS NULL OR outcome = 'HAPPENED';
CREATE INDEX effect_keys_of_job ON effect_keys (job_id);
CREATE INDEX effect_keys_due ON effect_keys (due_at) WHERE due_at IS NOT NULL;

CREATE TRIGGER effect_keys_guard AFTER UPDATE ON effect_keys
-- rule: sqlite-guard attempt effect_keys.state
WHEN OLD.state = 'DONE' OR OLD.state = 'ABORTED'
  OR (OLD.state <> NEW.state AND NOT (
          OLD.state = 'LEASED' AND (NEW.state = 'IN_PROGRESS' OR NEW.state = 'ABORTED')
       OR OLD.state = 'IN_PROGRESS' AND (NEW.state = 'COMMITTED' OR NEW.state = 'ABORTED' OR NEW.state = 'DONE')
       OR OLD.state = 'COMMITTED' AND (NEW.state = 'DONE')))
BEGIN
  SELECT RAISE(ABORT, 'FINAL: this attempt has ended and cannot change') WHERE OLD.state = 'DONE' OR OLD.state = 'ABORTED';
  SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the attempt lifecycle has no such move')
   WHERE OLD.state <> NEW.state;
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases');
END;
-- end rule
CREATE TRIGGER effect_keys_delete BEFORE DELETE ON effect_keys WHEN OLD.outcome IS NULL
BEGIN SELECT RAISE(ABORT, 'DELETE: nobody knows yet what came of this effect'); END;
