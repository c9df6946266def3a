-- tries: the failed tries and drawn values of the current turn of the listed jobs, job by job in the order of happening.
-- Read from the newest fact back to the one that began the turn.
SELECT e.*
  FROM jsonb_array_elements($1::jsonb) AS r
 CROSS JOIN LATERAL (
       SELECT @names(StoredEvent)
         FROM events
        WHERE job_id = r ->> 0 AND type IN ('try', 'note')
          AND n > CASE WHEN r ->> 1 = '0' THEN 0
                       ELSE (SELECT turn.n
                               FROM events AS turn
                              WHERE turn.job_id = r ->> 0 AND turn.type = 'again'
                              ORDER BY turn.job_id DESC, turn.n DESC
                              LIMIT 1) END
        ORDER BY n) AS e
