-- Queues are rows: limits over all processes, slots, and tokens.
ALTER TABLE jobs ADD COLUMN limit_key TEXT COLLATE "C";
ALTER TABLE jobs ADD COLUMN began_in TEXT COLLATE "C";
CREATE INDEX jobs_of_key ON jobs (queue, limit_key, priority, ready_at)
  WHERE limit_key IS NOT NULL AND began_in IS NULL AND ready_at IS NOT NULL AND hold IS NULL;
CREATE INDEX jobs_begun ON jobs (began_in, ready_at)
  WHERE began_in IS NOT NULL AND ready_at IS NOT NULL AND hold IS NULL;

-- A queue with a row is claimed by its limits: what a program declares, and what a person has set, which wins. `turn` is the
-- key that was served last; the bucket of the rate is full again at `full_us`, in microseconds by the store's clock.
CREATE TABLE queues (
  queue      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  declared   TEXT,
  chosen     TEXT,
  paused_by  TEXT,
  paused_at  BIGINT,
  created_at BIGINT NOT NULL,
  rev        BIGINT NOT NULL,
  turn       TEXT COLLATE "C" NOT NULL DEFAULT '',
  full_us    BIGINT NOT NULL DEFAULT 0,
  CHECK ((paused_by IS NULL) = (paused_at IS NULL))
) WITH (fillfactor = 70);

-- The slots of such queues. One counts while its attempt has not ended; if it `holds`, while its job has not. The next claim
-- removes the others.
CREATE TABLE queue_slots (
  job_id    TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  queue     TEXT COLLATE "C" NOT NULL,
  limit_key TEXT COLLATE "C" NOT NULL,
  attempt   BIGINT NOT NULL,
  owner     TEXT NOT NULL,
  holds     BIGINT NOT NULL CHECK (holds IN (0, 1))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX queue_slots_of_queue ON queue_slots (queue);

-- The buckets of keys with a rate; one that is not here is full.
CREATE TABLE queue_buckets (
  queue     TEXT COLLATE "C" NOT NULL,
  limit_key TEXT COLLATE "C" NOT NULL,
  full_us   BIGINT NOT NULL,
  PRIMARY KEY (queue, limit_key)
) WITH (fillfactor = 70);

CREATE INDEX queue_buckets_full ON queue_buckets (queue, full_us);
