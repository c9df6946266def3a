-- put_slot: a job takes a slot of its queue, or goes on with the one that it holds.
-- takes: job_id text, queue text, limit_key text, attempt int, owner text, holds int
INSERT INTO queue_slots (job_id, queue, limit_key, attempt, owner, holds)
VALUES (:job_id, :queue, :limit_key, :attempt, :owner, :holds)
    ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, owner = excluded.owner
