-- facts: the events of a job that follow a number; steps that are their own events are in `step_facts`.
-- takes: job_id text, after int, limit int
SELECT @names(StoredEvent) FROM events WHERE job_id = :job_id AND n > :after ORDER BY n LIMIT :limit
