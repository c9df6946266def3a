-- What is open, apart from all that is over: a wait, a wake-up, a claim or a turn looks at the former, and pays nothing
-- for the latter. A step or a child that is written as it ended is in none of these indexes.

CREATE INDEX steps_open ON steps (job_id, name) WHERE completed_at IS NULL;
CREATE INDEX messages_waiting ON messages (job_id, kind, name, arrived) WHERE acked_at IS NULL;
CREATE INDEX messages_begun ON messages (job_id) WHERE acked_at IS NULL AND ledger > 0;
-- No query uses it: a timer is found by its wait, and a job by the instant at which it is due.
DROP INDEX messages_due;

-- Attempts that are charged to the budget: those since the job last recorded anything, or came to a wait or a turn. Found
-- from the newest attempt backwards; steps of earlier turns were recorded before the turn was over.
DROP VIEW futile_attempts;
DROP VIEW job_rows;
CREATE VIEW futile_attempts (job_id, attempt, reason) AS
SELECT home.job_id, a.attempt, a.reason
  FROM jobs AS home CROSS JOIN attempts AS a
 WHERE a.job_id = home.job_id AND a.unit = '' AND a.charged = 1
   AND a.attempt > coalesce((SELECT w.attempt
                               FROM attempts AS w
                              WHERE w.job_id = home.job_id AND w.unit = '' AND w.reason = 'SUSPENDED'
                              ORDER BY w.attempt DESC
                              LIMIT 1), 0)
   AND a.attempt >= coalesce((SELECT max(s.attempt)
                                FROM steps AS s
                               WHERE s.job_id = home.job_id AND s.dimension = home.dimension), 0);

-- How far the clock of this file is ahead of the boot clock of its machine, in the boot that `epoch` names. It never
-- falls while that boot lasts, so a wall clock that is set back delays no job. One row.
CREATE TABLE clock (
  id    INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  epoch TEXT NOT NULL,
  ahead INTEGER NOT NULL
) STRICT;
