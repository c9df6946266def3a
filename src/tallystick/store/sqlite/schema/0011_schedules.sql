-- A schedule has the tick that comes next; what it was is seen in the jobs that it made. A change replaces the row, guarded by
-- its revision. It is due when it has an instant for that: not while it is paused or held.
CREATE TABLE schedules (
  schedule_id TEXT NOT NULL PRIMARY KEY,
  tenant_id   TEXT NOT NULL,
  handler     TEXT NOT NULL,
  version     TEXT NOT NULL,
  payload     TEXT NOT NULL,
  instant_as  TEXT,
  options     TEXT NOT NULL,
  timetable   TEXT NOT NULL,
  missed      TEXT NOT NULL CHECK (missed = 'skip' OR missed = 'last' OR missed = 'all'),
  overlap     TEXT NOT NULL CHECK (overlap = 'allow' OR overlap = 'skip' OR overlap = 'cancel_old'),
  jitter_ms   INTEGER NOT NULL CHECK (jitter_ms >= 0),
  declared    INTEGER NOT NULL CHECK (declared IN (0, 1)),
  next_at     INTEGER,
  due_at      INTEGER,
  paused_by   TEXT,
  hold_reason TEXT,
  last_at     INTEGER,
  last_job_id TEXT,
  created_at  INTEGER NOT NULL,
  rev         INTEGER NOT NULL,
  CHECK (due_at IS NULL OR (next_at IS NOT NULL AND paused_by IS NULL AND hold_reason IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
