-- facts: the events of a job that follow number $2, at most $3 (-1: all); steps that are their own events are in
-- `step_facts`.
SELECT job_id, n, type, at, attempt, payload, prev_hash, event_hash
  FROM events
 WHERE job_id = $1 AND n > $2
 ORDER BY n
 LIMIT nullif($3::bigint, -1)
