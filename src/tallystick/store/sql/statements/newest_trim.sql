-- newest_trim: the fact of a job that tells of its newest trimming. No row: it was never trimmed.
-- takes: job_id text
SELECT @names(StoredEvent) FROM events WHERE job_id = :job_id AND type = 'trim' ORDER BY n DESC LIMIT 1
