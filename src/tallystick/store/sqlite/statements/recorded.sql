-- recorded: what a job has recorded in one dimension, in the order in which it happened, as a copy of it needs it.
SELECT n, kind, name, occurrence, state, ledger, result, error, notes, event_hash
  FROM steps
 WHERE job_id = ?1 AND dimension = ?2 AND n IS NOT NULL
 ORDER BY n
