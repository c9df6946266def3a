-- A schedule has the tick that comes next; what it was is seen in the jobs that it made. A change replaces the row, guarded by
-- its revision. It is due when it has an instant for that: not while it is paused or held.
CREATE TABLE schedules (
  schedule_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  tenant_id   TEXT COLLATE "C" NOT NULL,
  handler     TEXT COLLATE "C" NOT NULL,
  version     TEXT COLLATE "C" NOT NULL,
  payload     TEXT NOT NULL,
  instant_as  TEXT,
  options     TEXT NOT NULL,
  timetable   TEXT NOT NULL,
  missed      TEXT COLLATE "C" NOT NULL CHECK (missed = ANY ('{skip,last,all}')),
  overlap     TEXT COLLATE "C" NOT NULL CHECK (overlap = ANY ('{allow,skip,cancel_old}')),
  jitter_ms   BIGINT NOT NULL CHECK (jitter_ms >= 0),
  declared    BIGINT NOT NULL CHECK (declared IN (0, 1)),
  next_at     BIGINT,
  due_at      BIGINT,
  paused_by   TEXT,
  hold_reason TEXT,
  last_at     BIGINT,
  last_job_id TEXT,
  created_at  BIGINT NOT NULL,
  rev         BIGINT NOT NULL,
  CHECK (due_at IS NULL OR (next_at IS NOT NULL AND paused_by IS NULL AND hold_reason IS NULL))
);

CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
