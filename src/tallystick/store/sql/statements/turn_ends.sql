-- turn_ends: the facts that have ended the oldest turns of a job that are there, in order.
-- takes: job_id text, limit int
SELECT @names(StoredEvent) FROM events WHERE job_id = :job_id AND type = 'again' ORDER BY n LIMIT :limit
