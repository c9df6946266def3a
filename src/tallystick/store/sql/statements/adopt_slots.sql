-- adopt_slots: give slots to the jobs of a queue that run now and have none: they were claimed when it had no limits.
-- takes: queue text
INSERT INTO queue_slots (job_id, queue, limit_key, attempt, owner, holds)
SELECT j.job_id, j.queue, coalesce(j.limit_key, ''), live.attempt, live.lease_owner, 0
  FROM attempts AS live
 CROSS JOIN jobs AS j
 WHERE j.job_id = live.job_id AND j.queue = :queue AND live.unit = '' AND @is(held, live.status)
    ON CONFLICT (job_id) DO NOTHING
