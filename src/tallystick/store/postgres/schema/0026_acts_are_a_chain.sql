-- Acts become a chain over the whole store; those that are there get their places and hashes in it.
CREATE TEMPORARY TABLE acts_of_old ON COMMIT DROP AS
SELECT row_number() OVER (ORDER BY seq) AS seq, at, about, name, verb, who, told,
       encode(sha256(convert_to(verb, 'UTF8') || '\x00'::bytea || convert_to(who, 'UTF8') || '\x00'::bytea
                     || convert_to(told, 'UTF8') || '\x00'::bytea), 'hex') AS said_hash
  FROM acts;
DROP TABLE acts;

-- What people did to jobs, queues and schedules, and who it was, in a chain over the whole store. What was said to a job goes with
-- it, and is empty then; its line stays, so that the chain does.
CREATE TABLE acts (
  seq        BIGINT NOT NULL PRIMARY KEY CHECK (seq >= 1),
  at         BIGINT NOT NULL,
  about      TEXT COLLATE "C" NOT NULL CHECK (about = ANY ('{job,queue,schedule}')),
  name       TEXT COLLATE "C" NOT NULL,
  verb       TEXT NOT NULL,
  who        TEXT NOT NULL,
  told       TEXT NOT NULL,
  said_hash  TEXT NOT NULL,
  prev_hash  TEXT NOT NULL,
  event_hash TEXT NOT NULL
);

CREATE INDEX acts_of ON acts (name, about, seq);
CREATE INDEX acts_about ON acts (about, seq) WHERE who <> '';

CREATE FUNCTION refuse_another_act() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF NEW.verb = '' AND NEW.who = '' AND NEW.told = '' AND OLD.about = 'job'
     AND (NEW.seq, NEW.at, NEW.about, NEW.name, NEW.said_hash, NEW.prev_hash, NEW.event_hash)
         = (OLD.seq, OLD.at, OLD.about, OLD.name, OLD.said_hash, OLD.prev_hash, OLD.event_hash)
     AND EXISTS (SELECT 1 FROM jobs WHERE job_id = OLD.name AND pruned_at IS NOT NULL) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'FINAL: an act is a fact and cannot change'
    USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME;
END $$;
CREATE TRIGGER acts_guard BEFORE UPDATE ON acts FOR EACH ROW EXECUTE FUNCTION refuse_another_act();
CREATE TRIGGER acts_delete BEFORE DELETE ON acts FOR EACH ROW
EXECUTE FUNCTION refuse_change('DELETE: what people did is remembered');
CREATE TRIGGER acts_truncate BEFORE TRUNCATE ON acts
EXECUTE FUNCTION refuse_change('DELETE: what people did is remembered');

WITH RECURSIVE chained AS (
  SELECT 0::bigint AS seq, NULL::text AS prev_hash, '' AS event_hash
  UNION ALL
  SELECT old.seq, before.event_hash,
         encode(sha256(convert_to(old.seq::text, 'UTF8') || '\x00'::bytea || convert_to(old.at::text, 'UTF8') || '\x00'::bytea
                       || convert_to(old.about, 'UTF8') || '\x00'::bytea || convert_to(old.name, 'UTF8') || '\x00'::bytea
                       || convert_to(old.said_hash, 'UTF8') || '\x00'::bytea || decode(before.event_hash, 'hex')), 'hex')
    FROM chained AS before
    JOIN acts_of_old AS old ON old.seq = before.seq + 1
)
INSERT INTO acts
SELECT old.*, chained.prev_hash, chained.event_hash FROM acts_of_old AS old JOIN chained ON chained.seq = old.seq;
