-- chain_head: a job's newest fact, be it an event or an inline step.
SELECT n, event_hash
  FROM (SELECT n, event_hash FROM (SELECT n, event_hash FROM steps WHERE job_id = ?1 AND n IS NOT NULL AND misplaced IS NULL ORDER BY n DESC LIMIT 1)
        UNION ALL
        SELECT n, event_hash FROM (SELECT n, event_hash FROM events WHERE job_id = ?1 ORDER BY n DESC LIMIT 1))
 ORDER BY n DESC
 LIMIT 1
