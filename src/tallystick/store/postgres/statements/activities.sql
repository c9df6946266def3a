-- activities: a page of the waits, sleeps and groups of a job behind the place ($2, $3, $4), each with the place of its
-- fact and whether it is a copy that a fork was born with.
SELECT job_id, dimension, name, occurrence, kind, state, ledger, rev, attempt, semaphore, threshold, failed, payload, n,
       origin_job_id IS NOT NULL
  FROM steps
 WHERE job_id = $1 AND (dimension, name, occurrence) > ($2, $3, $4) AND kind <> 'step' AND kind <> 'tx'
 ORDER BY dimension, name, occurrence
 LIMIT $5::bigint
