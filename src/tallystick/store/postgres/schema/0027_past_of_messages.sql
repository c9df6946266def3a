-- Only a read of all that ever arrived for a job takes the index over all of it; such a read says its condition too.
DROP INDEX messages_of_job;
CREATE INDEX messages_of_job ON messages (job_id) WHERE redeliveries >= 0;

CREATE OR REPLACE VIEW job_books AS
SELECT job_id, state, attempt, dimension, hold, hold_reason, semaphore, root_ledger, start_ledger, start_acked_at, cancel_at,
       error_code, ledger_form, head_n, head_hash, rev, options, canon_version,
       (SELECT count(*)
          FROM steps
         WHERE steps.job_id = jobs.job_id AND steps.completed_at IS NULL AND steps.kind <> 'protocol') AS open_waits,
       (SELECT coalesce(max(steps.attempt), 0) FROM steps WHERE steps.job_id = jobs.job_id) AS progress,
       EXISTS (SELECT 1
                 FROM steps
                WHERE steps.job_id = jobs.job_id AND steps.kind <> 'step' AND steps.kind <> 'tx')
       OR EXISTS (SELECT 1 FROM messages WHERE messages.job_id = jobs.job_id AND messages.redeliveries >= 0) AS has_waited,
       updated_at
  FROM jobs;
