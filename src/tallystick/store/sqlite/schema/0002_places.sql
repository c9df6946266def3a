-- A place in a job's chain is taken once, be it by a step or by an event: a unique key on each table, and a guard that
-- looks into the other one. The writer holds the file, so no other comes in between.

-- Of steps that stand at one place in an older file, those behind the first are left out of the key; `doctor` tells.
ALTER TABLE steps ADD COLUMN misplaced INTEGER CHECK (misplaced = 1);

DROP TRIGGER steps_guard;

UPDATE steps SET misplaced = 1
 WHERE rowid IN (SELECT later.rowid
                   FROM steps AS later
                   JOIN (SELECT job_id, n, min(rowid) AS first FROM steps WHERE n IS NOT NULL GROUP BY job_id, n HAVING count(*) > 1) AS twice
                     ON later.job_id = twice.job_id AND later.n = twice.n AND later.rowid > twice.first);

CREATE TRIGGER steps_guard AFTER UPDATE ON steps
-- rule: sqlite-guard step steps.state.ledger
WHEN OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED'
  OR NEW.ledger < OLD.ledger
  OR (OLD.state <> NEW.state AND NOT (
          OLD.state = 'PENDING' AND (NEW.state = 'DISPATCHING' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'DISPATCHING' AND (NEW.state = 'AWAITING_ACK' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLED' OR NEW.state = 'IN_PROGRESS' OR NEW.state = 'SUCCEEDED' OR NEW.state = 'FAILED_RETRY')
       OR OLD.state = 'AWAITING_ACK' AND (NEW.state = 'IN_PROGRESS' OR NEW.state = 'FAILED_RETRY' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'CANCELLED' OR NEW.state = 'SUCCEEDED')
       OR OLD.state = 'IN_PROGRESS' AND (NEW.state = 'SUCCEEDED' OR NEW.state = 'FAILED_FINAL' OR NEW.state = 'FAILED_RETRY' OR NEW.state = 'CANCELLED')
       OR OLD.state = 'FAILED_RETRY' AND (NEW.state = 'DISPATCHING' OR NEW.state = 'CANCELLED')))
BEGIN
  SELECT RAISE(ABORT, 'FINAL: this step has ended and cannot change') WHERE OLD.state = 'SUCCEEDED' OR OLD.state = 'FAILED_FINAL' OR OLD.state = 'CANCELLED';
  SELECT RAISE(ABORT, 'ILLEGAL_TRANSITION: the step lifecycle has no such move')
   WHERE OLD.state <> NEW.state;
  SELECT RAISE(ABORT, 'LEDGER: a ledger never decreases');
END;
-- end rule

CREATE UNIQUE INDEX steps_places ON steps (job_id, n) WHERE n IS NOT NULL AND misplaced IS NULL;

-- Steps are written under a fence, and the statements that insert them look for an event at their place too.
CREATE TRIGGER steps_placed AFTER UPDATE OF n ON steps
WHEN EXISTS (SELECT 1 FROM events WHERE job_id = NEW.job_id AND n = NEW.n)
BEGIN SELECT RAISE(ABORT, 'PLACE: an event stands at this place of the chain'); END;

CREATE TRIGGER events_place AFTER INSERT ON events
WHEN NEW.n > 2 AND EXISTS (SELECT 1 FROM steps WHERE job_id = NEW.job_id AND n = NEW.n AND misplaced IS NULL)
BEGIN SELECT RAISE(ABORT, 'PLACE: a step stands at this place of the chain'); END;

-- An open job whose history has a place twice or not at all goes no further until a person has looked at it.
UPDATE jobs
   SET hold = 'MISMATCH', rev = rev + 1,
       hold_reason = 'its history has a place twice or not at all (see tally doctor); resume it to go on from there, or cancel it'
 WHERE completed_at IS NULL AND hold IS NULL
   AND (SELECT count(*) <> max(n) OR count(DISTINCT n) <> max(n)
          FROM (SELECT n FROM steps WHERE job_id = jobs.job_id AND n IS NOT NULL
                UNION ALL
                SELECT n FROM events WHERE job_id = jobs.job_id));
