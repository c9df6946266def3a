-- What people did to jobs, queues and schedules, and who it was; the acts of a job go with it.
CREATE TABLE acts (
  seq   INTEGER PRIMARY KEY,
  at    INTEGER NOT NULL,
  about TEXT NOT NULL CHECK (about = 'job' OR about = 'queue' OR about = 'schedule'),
  name  TEXT NOT NULL,
  verb  TEXT NOT NULL,
  who   TEXT NOT NULL,
  told  TEXT NOT NULL
) STRICT;

CREATE INDEX acts_of ON acts (name, about, seq);

CREATE TRIGGER acts_guard BEFORE UPDATE ON acts
BEGIN SELECT RAISE(ABORT, 'FINAL: an act is a fact and cannot change'); END;
