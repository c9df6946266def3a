-- records: the recorded steps of a job's current dimension, in the order in which they happened.
SELECT name, occurrence, kind, state, n, result, error, notes, event_hash
  FROM steps
 WHERE job_id = ?1 AND dimension = ?2 AND n IS NOT NULL
 ORDER BY n
