-- What a job shows while it runs, the last value of each name. Nothing is decided by it; it is no fact and has no history.
CREATE TABLE job_values (
  job_id     TEXT COLLATE "C" NOT NULL,
  name       TEXT COLLATE "C" NOT NULL,
  value      TEXT NOT NULL,
  rev        BIGINT NOT NULL DEFAULT 1,
  attempt    BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  PRIMARY KEY (job_id, name)
) WITH (fillfactor = 70);
