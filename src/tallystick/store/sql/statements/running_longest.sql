-- running_longest: the jobs that workers have, the one that runs longest first. As many rows are read as there are leases.
-- takes: limit int
SELECT live.job_id, j.handler, j.queue, live.lease_owner, live.started_at
  FROM attempts AS live
 CROSS JOIN jobs AS j
 WHERE j.job_id = live.job_id AND live.unit = '' AND @is(held, live.status) AND live.started_at IS NOT NULL
 ORDER BY live.started_at, live.job_id
 LIMIT :limit
