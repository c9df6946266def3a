-- trim_attempts: the attempts of turns that are written down as trimmed go. No row changed: there were none.
-- takes: job_id text, attempt int
DELETE FROM attempts WHERE job_id = :job_id AND unit = '' AND attempt <= :attempt
