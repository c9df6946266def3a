-- trim_events: the facts of turns that are written down as trimmed go. No row changed: there were none.
-- takes: job_id text, last_n int
DELETE FROM events WHERE job_id = :job_id AND n <= :last_n
