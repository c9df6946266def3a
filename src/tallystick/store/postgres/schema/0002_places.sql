-- A place in a job's chain is taken once, be it by a step or by an event: a unique key on each table, and a guard that
-- looks into the other one. The writer for a job holds its attempt or its row, so no other comes in between.

-- Of steps that stand at one place in an older database, those behind the first are left out of the key; `doctor` tells.
ALTER TABLE steps ADD COLUMN misplaced BIGINT CHECK (misplaced = 1);

ALTER TABLE steps DISABLE TRIGGER steps_guard;

UPDATE steps SET misplaced = 1
  FROM (SELECT ctid, row_number() OVER (PARTITION BY job_id, n ORDER BY completed_at, dimension, name, occurrence) AS standing
          FROM steps
         WHERE n IS NOT NULL) AS placed
 WHERE steps.ctid = placed.ctid AND placed.standing > 1;

ALTER TABLE steps ENABLE TRIGGER steps_guard;

CREATE UNIQUE INDEX steps_places ON steps (job_id, n) WHERE n IS NOT NULL AND misplaced IS NULL;

-- Steps are written under a fence, and the statements that insert them look for an event at their place too.
CREATE FUNCTION refuse_place_of_event() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM events WHERE events.job_id = NEW.job_id AND events.n = NEW.n) THEN
    RAISE EXCEPTION 'PLACE: an event stands at this place of the chain'
      USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION refuse_place_of_step() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF EXISTS (SELECT 1
               FROM steps
              WHERE steps.job_id = NEW.job_id AND steps.n = NEW.n AND steps.misplaced IS NULL) THEN
    RAISE EXCEPTION 'PLACE: a step stands at this place of the chain'
      USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER steps_placed AFTER UPDATE OF n ON steps FOR EACH ROW WHEN (NEW.n IS NOT NULL)
EXECUTE FUNCTION refuse_place_of_event();

-- The first two places are those of the submission and of the first claim. The two statements that write a return look for
-- a step at its place too: every job that ends well would pay for this.
CREATE TRIGGER events_place AFTER INSERT ON events FOR EACH ROW WHEN (NEW.n > 2 AND NEW.type <> 'return')
EXECUTE FUNCTION refuse_place_of_step();

-- An open job whose history has a place twice or not at all goes no further until a person has looked at it.
UPDATE jobs
   SET hold = 'MISMATCH', rev = rev + 1,
       hold_reason = 'its history has a place twice or not at all (see tally doctor); resume it to go on from there, or cancel it'
 WHERE completed_at IS NULL AND hold IS NULL
   AND (SELECT count(*) <> max(n) OR count(DISTINCT n) <> max(n)
          FROM (SELECT n FROM steps WHERE job_id = jobs.job_id AND n IS NOT NULL
                UNION ALL
                SELECT n FROM events WHERE job_id = jobs.job_id) AS facts);
