-- book: what one job claims about its own history; the columns are those of `books`.
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
 WHERE job_id = $1
