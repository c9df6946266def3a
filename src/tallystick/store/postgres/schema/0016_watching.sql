-- The workers of now: each writes a row of itself now and then, and removes it when it stops.
CREATE TABLE workers (
  owner      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  host       TEXT NOT NULL,
  pid        BIGINT NOT NULL,
  version    TEXT NOT NULL,
  queues     TEXT NOT NULL,
  slots      BIGINT NOT NULL,
  running    BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  heard_at   BIGINT NOT NULL
) WITH (fillfactor = 70);

-- How many jobs each worker has ended, by minute and state; for graphs, and kept for some days.
CREATE TABLE ended_by_minute (
  minute BIGINT NOT NULL,
  owner  TEXT COLLATE "C" NOT NULL,
  state  TEXT COLLATE "C" NOT NULL,
  ended  BIGINT NOT NULL CHECK (ended > 0),
  PRIMARY KEY (minute, owner, state)
);

-- What waits for a person, apart from all that does not.
CREATE INDEX jobs_held ON jobs (job_id) WHERE hold IS NOT NULL;
