-- What was removed by right: the job, whole or up to a turn, its last fact that is gone with its hash, when it was born, when it
-- went and its author. Only ever appended, and chained over the whole store, so that a removal can be told from a loss.
CREATE TABLE pruned (
  seq         BIGINT NOT NULL PRIMARY KEY CHECK (seq >= 1),
  job_id      TEXT COLLATE "C" NOT NULL,
  whole       BIGINT NOT NULL CHECK (whole IN (0, 1)),
  dimension   BIGINT NOT NULL,
  last_n      BIGINT NOT NULL,
  head_hash   TEXT NOT NULL,
  born_at     BIGINT NOT NULL,
  at          BIGINT NOT NULL,
  who         TEXT NOT NULL,
  prev_hash   TEXT NOT NULL,
  event_hash  TEXT NOT NULL
);

CREATE INDEX pruned_of_job ON pruned (job_id);

CREATE TRIGGER pruned_guard BEFORE UPDATE ON pruned FOR EACH ROW
EXECUTE FUNCTION refuse_change('FINAL: a removal is a fact and cannot change');
CREATE TRIGGER pruned_delete BEFORE DELETE ON pruned FOR EACH ROW
EXECUTE FUNCTION refuse_change('DELETE: what was removed is remembered');
CREATE TRIGGER pruned_truncate BEFORE TRUNCATE ON pruned
EXECUTE FUNCTION refuse_change('DELETE: what was removed is remembered');

-- When a job was last written is in its book too.
DROP VIEW job_books;
CREATE VIEW job_books AS
SELECT job_id, state, attempt, dimension, hold, hold_reason, semaphore, root_ledger, start_ledger, start_acked_at, cancel_at,
       error_code, ledger_form, head_n, head_hash, rev, options, canon_version,
       (SELECT count(*)
          FROM steps
         WHERE steps.job_id = jobs.job_id AND steps.completed_at IS NULL AND steps.kind <> 'protocol') AS open_waits,
       (SELECT coalesce(max(steps.attempt), 0) FROM steps WHERE steps.job_id = jobs.job_id) AS progress,
       EXISTS (SELECT 1
                 FROM steps
                WHERE steps.job_id = jobs.job_id AND steps.kind <> 'step' AND steps.kind <> 'tx')
       OR EXISTS (SELECT 1 FROM messages WHERE messages.job_id = jobs.job_id) AS has_waited,
       updated_at
  FROM jobs;
