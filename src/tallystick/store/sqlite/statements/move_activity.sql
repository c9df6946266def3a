-- move_activity: rows of activities as decisions want them, each guarded by its revision.
-- Fewer rows changed than given: one is not as it was when it was looked at.
-- takes: job_id, dimension, name, occurrence, before, state, ledger, rev, attempt, completed_at, result, error, n, prev_hash, event_hash
-- row: (:job_id, :dimension, :name, :occurrence, :before, :state, :ledger, :rev, :attempt, :completed_at, :result, :error, :n,
--   :prev_hash, :event_hash)
UPDATE steps
   SET state = given.state, ledger = given.ledger, rev = given.rev, attempt = given.attempt, completed_at = given.completed_at,
       lease_expires_at = CASE WHEN given.completed_at IS NULL THEN steps.lease_expires_at END,
       result = given.result, error = given.error, n = given.n, prev_hash = given.prev_hash, event_hash = given.event_hash
  FROM @given
 WHERE steps.job_id = given.job_id AND steps.dimension = given.dimension AND steps.name = given.name
   AND steps.occurrence = given.occurrence AND steps.rev = given.before
