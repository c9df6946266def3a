-- The home of the keys of effects, one row for each attempt: written with the intent, before the call, and kept when its job is
-- gone. A key is taken while its outcome is unknown, and for ever when it has happened.
CREATE TABLE effect_keys (
  exec_id    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  tenant_id  TEXT COLLATE "C" NOT NULL,
  effect     TEXT COLLATE "C" NOT NULL,
  key        TEXT COLLATE "C" NOT NULL,
  args_hash  TEXT COLLATE "C" NOT NULL,
  job_id     TEXT COLLATE "C" NOT NULL,
  unit       TEXT COLLATE "C" NOT NULL,
  attempt    BIGINT NOT NULL,
  state      TEXT COLLATE "C" NOT NULL,
  phase      TEXT COLLATE "C" NOT NULL CHECK (phase = ANY ('{CALLING,RESTING,IN_DOUBT,ENDED}')),
  outcome    TEXT COLLATE "C" CHECK (outcome = ANY ('{HAPPENED,REFUSED,NOT_DONE}')),
  arguments  TEXT NOT NULL,
  result     TEXT,
  error      TEXT,
  options    TEXT NOT NULL,
  lease_id   TEXT COLLATE "C" NOT NULL,
  calls      BIGINT NOT NULL CHECK (calls >= 1),
  probes     BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT,
  doubt      TEXT,
  called_at  BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  ended_at   BIGINT,
  ended_by   TEXT,
  rev        BIGINT NOT NULL DEFAULT 1,
  -- rule: postgres-states attempt state
  CHECK (state = ANY ('{LEASED,IN_PROGRESS,COMMITTED,DONE,ABORTED}')),
  -- end rule
  CHECK ((state = 'DONE') = (outcome IS NOT NULL)),
  CHECK ((phase = 'ENDED') = (outcome IS NOT NULL)),
  CHECK ((ended_at IS NULL) = (outcome IS NULL))
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX effect_keys_occupied ON effect_keys (tenant_id, effect, key) WHERE outcome IS NULL OR outcome = 'HAPPENED';
CREATE INDEX effect_keys_of_job ON effect_keys (job_id);
CREATE INDEX effect_keys_due ON effect_keys (due_at) WHERE due_at IS NOT NULL;

CREATE TRIGGER effect_keys_guard BEFORE UPDATE ON effect_keys FOR EACH ROW
-- rule: postgres-guard attempt effect_keys.state
WHEN (OLD.state = ANY ('{DONE,ABORTED}'))
EXECUTE FUNCTION refuse_change('FINAL: this attempt has ended and cannot change');

CREATE TRIGGER effect_keys_moves BEFORE UPDATE ON effect_keys FOR EACH ROW
WHEN (OLD.state <> NEW.state AND OLD.state || '>' || NEW.state <> ALL ('{
    LEASED>IN_PROGRESS,
    IN_PROGRESS>COMMITTED,
    COMMITTED>DONE,
    LEASED>ABORTED,
    IN_PROGRESS>ABORTED,
    IN_PROGRESS>DONE}'))
EXECUTE FUNCTION refuse_change('ILLEGAL_TRANSITION: the attempt lifecycle has no such move');
-- end rule
CREATE TRIGGER effect_keys_delete BEFORE DELETE ON effect_keys FOR EACH ROW WHEN (OLD.outcome IS NULL)
EXECUTE FUNCTION refuse_change('DELETE: nobody knows yet what came of this effect');
