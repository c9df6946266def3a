-- fact_hash: the hash of the fact at a place of a job, be it an event or a step. No row: nothing stands there.
-- takes: job_id text, n int
SELECT event_hash FROM events WHERE job_id = :job_id AND n = :n
UNION ALL
SELECT event_hash FROM steps WHERE job_id = :job_id AND n = :n
