-- tries: the failed tries of the listed jobs, job by job in the order of happening.
SELECT e.job_id, e.n, e.type, e.at, e.attempt, e.payload, e.prev_hash, e.event_hash
  FROM jsonb_array_elements($1::jsonb) AS r
  JOIN events AS e ON e.job_id = r ->> 0
 WHERE e.type = 'try'
 ORDER BY e.job_id, e.n
