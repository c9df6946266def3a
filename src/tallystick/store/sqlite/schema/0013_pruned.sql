-- What was removed by right: the job, whole or up to a turn, its last fact that is gone with its hash, when it was born, when it
-- went and its author. Only ever appended, and chained over the whole store, so that a removal can be told from a loss.
CREATE TABLE pruned (
  seq         INTEGER NOT NULL PRIMARY KEY CHECK (seq >= 1),
  job_id      TEXT NOT NULL,
  whole       INTEGER NOT NULL CHECK (whole IN (0, 1)),
  dimension   INTEGER NOT NULL,
  last_n      INTEGER NOT NULL,
  head_hash   TEXT NOT NULL,
  born_at     INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  who         TEXT NOT NULL,
  prev_hash   TEXT NOT NULL,
  event_hash  TEXT NOT NULL
) STRICT;

CREATE INDEX pruned_of_job ON pruned (job_id);

CREATE TRIGGER pruned_guard BEFORE UPDATE ON pruned
BEGIN SELECT RAISE(ABORT, 'FINAL: a removal is a fact and cannot change'); END;
CREATE TRIGGER pruned_delete BEFORE DELETE ON pruned
BEGIN SELECT RAISE(ABORT, 'DELETE: what was removed is remembered'); END;

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
