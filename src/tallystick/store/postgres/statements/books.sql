-- books: a page of what jobs claim about their own history, newest first, without their payloads.
-- An open activity is the start message until its step 2 is marked, every step that has not ended, and the message
-- that drives the job once it is taken.
SELECT job_id, state, attempt, hold, hold_reason, semaphore, start_ledger, head_n, head_hash, rev, options,
       CASE WHEN start_ledger / 1000000000 % 10 = 0 THEN 1 ELSE 0 END
       + (SELECT count(*)
            FROM steps
           WHERE steps.job_id = jobs.job_id AND steps.completed_at IS NULL AND steps.kind <> 'protocol')
       + (SELECT count(*)
            FROM messages
           WHERE messages.job_id = jobs.job_id AND messages.acked_at IS NULL AND messages.kind <> 'child'
             AND (messages.ledger / 10000000000 % 10 = 1 OR (messages.kind = 'resume' AND messages.name = 'again')))
  FROM jobs
 WHERE ($1::text IS NULL OR job_id < $1)
 ORDER BY job_id DESC
 LIMIT $2::bigint
