-- chain_head: a job's newest fact, be it an event or an inline step.
-- takes: job_id text
SELECT n, event_hash
  FROM (SELECT n, event_hash
          FROM (SELECT n, event_hash
                  FROM steps
                 WHERE job_id = :job_id AND n IS NOT NULL AND misplaced IS NULL
                 ORDER BY n DESC
                 LIMIT 1) AS step
        UNION ALL
        SELECT n, event_hash
          FROM (SELECT n, event_hash FROM events WHERE job_id = :job_id ORDER BY n DESC LIMIT 1) AS event) AS facts
 ORDER BY n DESC
 LIMIT 1
