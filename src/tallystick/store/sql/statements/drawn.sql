-- drawn: the facts of a job's current turn, up to a number, that may carry drawn values; the rows of steps carry the others.
-- takes: job_id text, last int
SELECT payload
  FROM events
 WHERE job_id = :job_id AND type IN ('try', 'note') AND n <= :last
   AND n > (SELECT coalesce(max(n), 0) FROM events WHERE job_id = :job_id AND type = 'again')
 ORDER BY n
