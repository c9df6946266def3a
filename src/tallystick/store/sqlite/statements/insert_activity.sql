-- insert_activity: waits, sleeps, groups and effects begin, or were answered before they were asked for.
-- Fewer rows than given: an event stands at the place of one in its chain.
-- takes: Activity, created_at, completed_at, result, error, n, prev_hash, event_hash
-- row: (@values(Activity), :created_at, :completed_at, :result, :error, :n, :prev_hash, :event_hash)
INSERT INTO steps (@names(Activity), created_at, completed_at, result, error, n, prev_hash, event_hash)
SELECT @fields(Activity, given), given.created_at, given.completed_at, given.result, given.error, given.n, given.prev_hash,
       given.event_hash
  FROM @given
 WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.job_id = given.job_id AND events.n = given.n)
