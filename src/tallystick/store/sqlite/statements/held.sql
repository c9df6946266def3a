-- held: the newest jobs that wait for a person; the columns are those of `books`. Reads the whole table of jobs.
SELECT job_id, state, attempt, hold, hold_reason, semaphore, root_ledger, start_ledger, ledger_form, head_n,
       head_hash, rev, options, 0
  FROM jobs
 WHERE hold IS NOT NULL
 ORDER BY job_id DESC
 LIMIT ?1
