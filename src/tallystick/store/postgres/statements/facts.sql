-- facts: the events of a job in order; steps that are their own events are in `step_facts`.
SELECT job_id, n, type, at, attempt, payload, prev_hash, event_hash
  FROM events
 WHERE job_id = $1
 ORDER BY n
