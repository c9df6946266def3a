-- move_groups: groups as the last child of a flush leaves them, each guarded by its revision and confirmed in its threshold.
-- Fewer rows changed than given: one is not as it was when it was looked at, or comes to its threshold unsaid.
-- takes: job_id, dimension, name, occurrence, before, ledger, semaphore, failed, rev, hit
-- row: (:job_id, :dimension, :name, :occurrence, :before, :ledger, :semaphore, :failed, :rev, :hit)
UPDATE steps
   SET ledger = given.ledger, semaphore = given.semaphore, failed = given.failed, rev = given.rev
  FROM @given
 WHERE steps.job_id = given.job_id AND steps.dimension = given.dimension AND steps.name = given.name
   AND steps.occurrence = given.occurrence AND steps.rev = given.before AND kind = 'group' AND state = 'IN_PROGRESS'
   AND (steps.semaphore <> threshold AND given.semaphore = threshold) = given.hit
