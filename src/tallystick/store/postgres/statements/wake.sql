-- wake: a message has arrived for a wait (or a group) that is open and nobody runs the job: it is due now.
-- No row changed: the message stays in the inbox, and a live attempt or a later wait takes it.
UPDATE jobs
   SET ready_at = $2::bigint, updated_at = $2::bigint, rev = rev + 1
 WHERE job_id = $1 AND completed_at IS NULL AND (ready_at IS NULL OR ready_at > $2::bigint) AND attempt > 0
   AND NOT EXISTS (SELECT 1 FROM attempts
                    WHERE attempts.job_id = $1 AND unit = '' AND status IN ('LEASED', 'IN_PROGRESS'))
   AND EXISTS (SELECT 1
                 FROM steps
                WHERE steps.job_id = $1 AND name = $3 AND kind = $4 AND state = 'IN_PROGRESS' AND completed_at IS NULL)
