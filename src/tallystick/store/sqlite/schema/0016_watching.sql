-- The workers of now: each writes a row of itself now and then, and removes it when it stops.
CREATE TABLE workers (
  owner      TEXT NOT NULL PRIMARY KEY,
  host       TEXT NOT NULL,
  pid        INTEGER NOT NULL,
  version    TEXT NOT NULL,
  queues     TEXT NOT NULL,
  slots      INTEGER NOT NULL,
  running    INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  heard_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How many jobs each worker has ended, by minute and state; for graphs, and kept for some days.
CREATE TABLE ended_by_minute (
  minute INTEGER NOT NULL,
  owner  TEXT NOT NULL,
  state  TEXT NOT NULL,
  ended  INTEGER NOT NULL CHECK (ended > 0),
  PRIMARY KEY (minute, owner, state)
) STRICT, WITHOUT ROWID;

-- What waits for a person, apart from all that does not.
CREATE INDEX jobs_held ON jobs (job_id) WHERE hold IS NOT NULL;
