-- turn_end: the fact that has ended a turn of a job which goes on, and when the job was born. No row: no turn ended there.
-- takes: job_id text, n int
SELECT e.event_hash, e.attempt, j.created_at
  FROM events AS e
  JOIN jobs AS j ON j.job_id = e.job_id
 WHERE e.job_id = :job_id AND e.n = :n AND e.type = 'again' AND j.completed_at IS NULL
