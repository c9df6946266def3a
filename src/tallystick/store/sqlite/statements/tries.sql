-- tries: the failed tries and the newest fact of a job; the newest fact carries the head of the chain.
SELECT job_id, n, type, at, attempt, payload, prev_hash, event_hash
  FROM events
 WHERE job_id = ?1 AND (type = 'try' OR n = (SELECT max(n) FROM events WHERE job_id = ?1))
 ORDER BY n
