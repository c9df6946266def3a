-- Turns of a loop may go while their job goes on, when their removal is written down first.
DROP INDEX pruned_of_job;
CREATE INDEX pruned_of_job ON pruned (job_id, seq);

DROP TRIGGER attempts_delete;
-- rule: sqlite-kept attempt attempts
CREATE TRIGGER attempts_delete BEFORE DELETE ON attempts
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id)
  AND NOT coalesce((
         SELECT ended.attempt >= OLD.attempt FROM pruned
         JOIN events AS ended ON ended.job_id = pruned.job_id AND ended.n = pruned.last_n
          WHERE pruned.job_id = OLD.job_id AND pruned.whole = 0 ORDER BY pruned.seq DESC LIMIT 1), 0)
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this attempt is not pruned'); END;
-- end rule

DROP TRIGGER steps_delete;
-- rule: sqlite-kept step steps
CREATE TRIGGER steps_delete BEFORE DELETE ON steps
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id)
  AND NOT coalesce((
         SELECT pruned.dimension >= OLD.dimension FROM pruned
          WHERE pruned.job_id = OLD.job_id AND pruned.whole = 0 ORDER BY pruned.seq DESC LIMIT 1), 0)
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this step is not pruned'); END;
-- end rule

DROP TRIGGER messages_delete;
-- rule: sqlite-kept message messages
CREATE TRIGGER messages_delete BEFORE DELETE ON messages
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id)
  AND NOT coalesce((
         SELECT pruned.dimension >= OLD.dimension AND OLD.acked_at IS NOT NULL FROM pruned
          WHERE pruned.job_id = OLD.job_id AND pruned.whole = 0 ORDER BY pruned.seq DESC LIMIT 1), 0)
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this message is not pruned'); END;
-- end rule

DROP TRIGGER events_delete;
-- rule: sqlite-kept event events
CREATE TRIGGER events_delete BEFORE DELETE ON events
WHEN (SELECT pruned_at IS NULL FROM jobs WHERE job_id = OLD.job_id)
  AND NOT coalesce((
         SELECT pruned.last_n >= OLD.n FROM pruned
          WHERE pruned.job_id = OLD.job_id AND pruned.whole = 0 ORDER BY pruned.seq DESC LIMIT 1), 0)
BEGIN SELECT RAISE(ABORT, 'DELETE: the job of this event is not pruned'); END;
-- end rule
