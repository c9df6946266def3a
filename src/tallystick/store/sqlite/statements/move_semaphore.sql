-- move_semaphore: step 2 of messages, each in one statement: the job's semaphore, the message's digits, its activity's digits.
-- It fails unless all three are as they were looked at, and the semaphore comes to zero exactly if it was said to.
-- takes: job_id, rev, delta, root_ledger, hit, guid, digits, guid_ledger, acked_at, dimension, name, occurrence, activity_rev,
--   activity_ledger
-- row: (:job_id, :rev, :delta, :root_ledger, :hit, :guid, :digits, :guid_ledger, :acked_at, :dimension, :name, :occurrence,
--   :activity_rev, :activity_ledger)
INSERT INTO semaphore_moves (@takes) VALUES @rows
