-- What is open, apart from all that is over: a wait, a wake-up, a claim or a turn looks at the former, and pays nothing
-- for the latter. A step or a child that is written as it ended is in none of these indexes.

CREATE INDEX steps_open ON steps (job_id, name) WHERE completed_at IS NULL;
CREATE INDEX messages_waiting ON messages (job_id, kind, name, arrived) WHERE acked_at IS NULL;
-- Only a search for the newest arrival may take the other one: it would do for any message, after reading all others.
DROP INDEX messages_inbox;
CREATE INDEX messages_inbox ON messages (job_id, arrived) WHERE acked_at IS NULL AND arrived >= 0;
CREATE INDEX messages_begun ON messages (job_id) WHERE acked_at IS NULL AND ledger > 0;
-- No query uses it: a timer is found by its wait, and a job by the instant at which it is due.
DROP INDEX messages_due;

-- Attempts that are charged to the budget: those since the job last recorded anything, or came to a wait or a turn. Found
-- from the newest attempt backwards; steps of earlier turns were recorded before the turn was over.
DROP VIEW job_rows;
CREATE OR REPLACE VIEW futile_attempts (job_id, attempt, reason) AS
SELECT home.job_id, a.attempt, a.reason
  FROM jobs AS home
 CROSS JOIN LATERAL (
       SELECT attempts.attempt, attempts.reason
         FROM attempts
        WHERE attempts.job_id = home.job_id AND attempts.unit = '' AND attempts.charged = 1
          AND attempts.attempt > coalesce((SELECT w.attempt
                                             FROM attempts AS w
                                            WHERE w.job_id = home.job_id AND w.unit = '' AND w.reason = 'SUSPENDED'
                                            ORDER BY w.attempt DESC
                                            LIMIT 1), 0)
       OFFSET 0) AS a
 WHERE a.attempt >= coalesce((SELECT max(s.attempt)
                                FROM steps AS s
                               WHERE s.job_id = home.job_id AND s.dimension = home.dimension), 0);
