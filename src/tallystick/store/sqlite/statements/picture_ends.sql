-- picture_ends: the newest event of each of these jobs, and its newest inline step: the later of the two is its newest fact.
-- takes: jobs list
SELECT event.job_id, event.n, event.event_hash
  FROM :jobs
 CROSS JOIN events AS event
    ON event.job_id = wanted.value AND event.n = (SELECT max(n) FROM events WHERE job_id = wanted.value)
UNION ALL
SELECT step.job_id, step.n, step.event_hash
  FROM :jobs
 CROSS JOIN steps AS step
    ON step.job_id = wanted.value AND step.misplaced IS NULL
   AND step.n = (SELECT max(n) FROM steps WHERE job_id = wanted.value AND n IS NOT NULL AND misplaced IS NULL)
