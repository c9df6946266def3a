-- chain_end: the number of a job's newest fact, be it an event or an inline step.
SELECT max((SELECT coalesce(max(n), 0) FROM events WHERE job_id = ?1),
           (SELECT coalesce(max(n), 0) FROM steps WHERE job_id = ?1))
