-- recorded: what a job has recorded in one dimension, in the order in which it happened, as a copy of it needs it.
-- takes: job_id text, dimension int
SELECT n, kind, name, occurrence, state, ledger, result, error, notes, event_hash, threshold, payload
  FROM steps
 WHERE job_id = :job_id AND dimension = :dimension AND n IS NOT NULL
 ORDER BY n
