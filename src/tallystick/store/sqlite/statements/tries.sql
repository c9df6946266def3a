-- tries: the failed tries and drawn values of a job's current turn, and its newest fact, which carries the head of the chain.
SELECT job_id, n, type, at, attempt, payload, prev_hash, event_hash
  FROM events
 WHERE job_id = ?1
   AND (n = (SELECT max(n) FROM events WHERE job_id = ?1)
     OR (type IN ('try', 'note')
         AND n > (SELECT coalesce(max(n), 0) FROM events WHERE job_id = ?1 AND type = 'again')))
 ORDER BY n
