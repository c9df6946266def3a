-- Acts become a chain over the whole store; those that are there get their places and hashes in it.
DROP TRIGGER acts_guard;
DROP INDEX acts_of;
ALTER TABLE acts RENAME TO acts_of_old;

-- What people did to jobs, queues and schedules, and who it was, in a chain over the whole store. What was said to a job goes with
-- it, and is empty then; its line stays, so that the chain does.
CREATE TABLE acts (
  seq        INTEGER NOT NULL PRIMARY KEY CHECK (seq >= 1),
  at         INTEGER NOT NULL,
  about      TEXT NOT NULL CHECK (about = 'job' OR about = 'queue' OR about = 'schedule'),
  name       TEXT NOT NULL,
  verb       TEXT NOT NULL,
  who        TEXT NOT NULL,
  told       TEXT NOT NULL,
  said_hash  TEXT NOT NULL,
  prev_hash  TEXT NOT NULL,
  event_hash TEXT NOT NULL
) STRICT;

CREATE INDEX acts_of ON acts (name, about, seq);
CREATE INDEX acts_about ON acts (about, seq) WHERE who <> '';

CREATE TRIGGER acts_guard BEFORE UPDATE ON acts
WHEN NOT (NEW.verb = '' AND NEW.who = '' AND NEW.told = '' AND OLD.about = 'job'
          AND (NEW.seq, NEW.at, NEW.about, NEW.name, NEW.said_hash, NEW.prev_hash, NEW.event_hash)
              = (OLD.seq, OLD.at, OLD.about, OLD.name, OLD.said_hash, OLD.prev_hash, OLD.event_hash)
          AND EXISTS (SELECT 1 FROM jobs WHERE job_id = OLD.name AND pruned_at IS NOT NULL))
BEGIN SELECT RAISE(ABORT, 'FINAL: an act is a fact and cannot change'); END;
CREATE TRIGGER acts_delete BEFORE DELETE ON acts
BEGIN SELECT RAISE(ABORT, 'DELETE: what people did is remembered'); END;

WITH RECURSIVE old AS (
  SELECT row_number() OVER (ORDER BY seq) AS seq, at, about, name, verb, who, told, line_hash('', verb, who, told) AS said_hash
    FROM acts_of_old
), chained AS (
  SELECT old.*, '' AS prev_hash, line_hash('', seq, at, about, name, said_hash) AS event_hash FROM old WHERE seq = 1
  UNION ALL
  SELECT old.*, before.event_hash,
         line_hash(before.event_hash, old.seq, old.at, old.about, old.name, old.said_hash)
    FROM chained AS before
    JOIN old ON old.seq = before.seq + 1
)
INSERT INTO acts SELECT * FROM chained;
DROP TABLE acts_of_old;
