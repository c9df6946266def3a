-- move_activity: the row of an activity as a decision wants it, guarded by its revision.
-- No row changed: it is not as it was when it was looked at.
-- takes: job_id, dimension, name, occurrence, before, state, ledger, rev, attempt, completed_at, result, n, prev_hash, event_hash
UPDATE steps
   SET state = :state, ledger = :ledger, rev = :rev, attempt = :attempt, completed_at = :completed_at, result = :result,
       n = :n, prev_hash = :prev_hash, event_hash = :event_hash
 WHERE job_id = :job_id AND dimension = :dimension AND name = :name AND occurrence = :occurrence AND rev = :before
