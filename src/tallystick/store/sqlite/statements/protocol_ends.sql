-- protocol_ends: the newest fact of each of these protocol jobs, whose facts are all events.
-- takes: jobs
SELECT e.job_id, e.n, e.event_hash
  FROM json_each(:jobs) AS wanted
  JOIN events AS e ON e.job_id = wanted.value AND e.n = (SELECT max(n) FROM events WHERE job_id = wanted.value)
