-- Queues are rows: limits over all processes, slots, and tokens.
ALTER TABLE jobs ADD COLUMN limit_key TEXT;
ALTER TABLE jobs ADD COLUMN began_in TEXT;
CREATE INDEX jobs_of_key ON jobs (queue, limit_key, priority, ready_at)
  WHERE limit_key IS NOT NULL AND began_in IS NULL AND ready_at IS NOT NULL AND hold IS NULL;
CREATE INDEX jobs_begun ON jobs (began_in, ready_at)
  WHERE began_in IS NOT NULL AND ready_at IS NOT NULL AND hold IS NULL;

-- A queue with a row is claimed by its limits: what a program declares, and what a person has set, which wins. `turn` is the
-- key that was served last; the bucket of the rate is full again at `full_us`, in microseconds by the store's clock.
CREATE TABLE queues (
  queue      TEXT NOT NULL PRIMARY KEY,
  declared   TEXT,
  chosen     TEXT,
  paused_by  TEXT,
  paused_at  INTEGER,
  created_at INTEGER NOT NULL,
  rev        INTEGER NOT NULL,
  turn       TEXT NOT NULL DEFAULT '',
  full_us    INTEGER NOT NULL DEFAULT 0,
  CHECK ((paused_by IS NULL) = (paused_at IS NULL))
) STRICT, WITHOUT ROWID;

-- The slots of such queues. One counts while its attempt has not ended; if it `holds`, while its job has not. The next claim
-- removes the others.
CREATE TABLE queue_slots (
  job_id    TEXT NOT NULL PRIMARY KEY,
  queue     TEXT NOT NULL,
  limit_key TEXT NOT NULL,
  attempt   INTEGER NOT NULL,
  owner     TEXT NOT NULL,
  holds     INTEGER NOT NULL CHECK (holds IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_slots_of_queue ON queue_slots (queue);

-- The buckets of keys with a rate; one that is not here is full.
CREATE TABLE queue_buckets (
  queue     TEXT NOT NULL,
  limit_key TEXT NOT NULL,
  full_us   INTEGER NOT NULL,
  PRIMARY KEY (queue, limit_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_buckets_full ON queue_buckets (queue, full_us);
