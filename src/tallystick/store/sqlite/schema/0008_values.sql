-- What a job shows while it runs, the last value of each name. Nothing is decided by it; it is no fact and has no history.
CREATE TABLE job_values (
  job_id     TEXT NOT NULL,
  name       TEXT NOT NULL,
  value      TEXT NOT NULL,
  rev        INTEGER NOT NULL DEFAULT 1,
  attempt    INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (job_id, name)
) STRICT, WITHOUT ROWID;
