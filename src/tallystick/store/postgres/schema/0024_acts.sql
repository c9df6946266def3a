-- What people did to jobs, queues and schedules, and who it was; the acts of a job go with it.
CREATE TABLE acts (
  seq   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at    BIGINT NOT NULL,
  about TEXT COLLATE "C" NOT NULL CHECK (about = ANY ('{job,queue,schedule}')),
  name  TEXT COLLATE "C" NOT NULL,
  verb  TEXT NOT NULL,
  who   TEXT NOT NULL,
  told  TEXT NOT NULL
);

CREATE INDEX acts_of ON acts (name, about, seq);

CREATE TRIGGER acts_guard BEFORE UPDATE ON acts FOR EACH ROW
EXECUTE FUNCTION refuse_change('FINAL: an act is a fact and cannot change');
