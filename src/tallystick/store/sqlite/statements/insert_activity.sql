-- insert_activity: a wait, a sleep or a group begins, or one that was answered before it was asked for.
-- No row: an event stands at its place of the chain.
-- takes: Activity, created_at, completed_at, result, n, prev_hash, event_hash
INSERT INTO steps (@names(Activity), created_at, completed_at, result, n, prev_hash, event_hash)
SELECT @values(Activity), :created_at, :completed_at, :result, :n, :prev_hash, :event_hash
 WHERE NOT EXISTS (SELECT 1 FROM events WHERE job_id = :job_id AND n = :n)
