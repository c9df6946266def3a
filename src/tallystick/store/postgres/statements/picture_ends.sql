-- picture_ends: the newest fact of each of these jobs, be it an event or an inline step.
SELECT wanted.job_id, newest.n, newest.event_hash
  FROM unnest($1::text[]) AS wanted (job_id)
 CROSS JOIN LATERAL (
       SELECT facts.n, facts.event_hash
         FROM ((SELECT n, event_hash
                  FROM steps
                 WHERE job_id = wanted.job_id AND n IS NOT NULL AND misplaced IS NULL
                 ORDER BY n DESC
                 LIMIT 1)
               UNION ALL
               (SELECT n, event_hash FROM events WHERE job_id = wanted.job_id ORDER BY n DESC LIMIT 1)) AS facts
        ORDER BY facts.n DESC
        LIMIT 1) AS newest
