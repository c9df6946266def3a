-- tries_of_many: the failed tries and drawn values of the current turns of jobs, and the newest fact of each, in no order.
SELECT events.job_id, n, events.type, at, attempt, payload, prev_hash, event_hash
  FROM json_each(?1) AS wanted CROSS JOIN events
 WHERE events.job_id = wanted.key
   AND (n = (SELECT max(n) FROM events WHERE job_id = wanted.key)
     OR (events.type IN ('try', 'note')
         AND n > (SELECT coalesce(max(n), 0) FROM events WHERE job_id = wanted.key AND type = 'again')))
