-- newest_event: the newest fact of a job that is not a step. No row: there is no such job.
-- takes: job_id text
SELECT @names(StoredEvent) FROM events WHERE job_id = :job_id ORDER BY n DESC LIMIT 1
