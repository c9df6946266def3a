-- Turns of a loop may go while their job goes on, when their removal is written down first.
DROP INDEX pruned_of_job;
CREATE INDEX pruned_of_job ON pruned (job_id, seq);

CREATE OR REPLACE FUNCTION refuse_unless_pruned() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  line pruned%ROWTYPE;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM jobs WHERE job_id = OLD.job_id AND pruned_at IS NULL) THEN
    RETURN OLD;
  END IF;
  SELECT * INTO line FROM pruned WHERE pruned.job_id = OLD.job_id AND pruned.whole = 0 ORDER BY pruned.seq DESC LIMIT 1;
  IF line.seq IS NULL OR TG_TABLE_NAME = 'outbox' THEN
    NULL;
  ELSIF TG_TABLE_NAME = 'events' THEN
    IF OLD.n <= line.last_n THEN
      RETURN OLD;
    END IF;
  ELSIF TG_TABLE_NAME = 'attempts' THEN
    IF OLD.attempt <= (SELECT ended.attempt FROM events AS ended WHERE ended.job_id = OLD.job_id AND ended.n = line.last_n) THEN
      RETURN OLD;
    END IF;
  ELSIF OLD.dimension <= line.dimension THEN
    IF TG_TABLE_NAME = 'steps' THEN
      RETURN OLD;
    ELSIF OLD.acked_at IS NOT NULL THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION 'DELETE: the job of this row is not pruned'
    USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
END $$;
