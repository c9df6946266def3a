-- tries: the failed tries and drawn values of the current turns of jobs, and the newest fact of each, in no order.
-- Read from the newest fact back to the one that began the turn.
SELECT @names(StoredEvent, events)
  FROM json_each(?1) AS wanted CROSS JOIN events
 WHERE events.job_id = wanted.key
   AND n >= coalesce((SELECT turn.n
                        FROM events AS turn
                       WHERE turn.job_id = wanted.key AND turn.type = 'again'
                       ORDER BY turn.n DESC
                       LIMIT 1), 0)
   AND (events.type IN ('try', 'note') OR n = (SELECT max(n) FROM events WHERE job_id = wanted.key))
