-- drawn: the facts of a job's current turn, up to number ?2, that may carry drawn values; the rows of steps carry the others.
SELECT payload
  FROM events
 WHERE job_id = ?1 AND type IN ('try', 'note') AND n <= ?2
   AND n > (SELECT coalesce(max(n), 0) FROM events WHERE job_id = ?1 AND type = 'again')
 ORDER BY n
