-- trim_steps: the steps, waits and groups of turns that are written down as trimmed go. No row changed: there were none.
-- takes: job_id text, dimension int
DELETE FROM steps WHERE job_id = :job_id AND dimension <= :dimension
