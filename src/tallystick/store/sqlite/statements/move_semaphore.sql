-- move_semaphore: step 2 of a message in one statement: the job's semaphore, the message's digits, its activity's digits.
-- It fails unless all three are as they were looked at, and the semaphore comes to zero exactly if it was said to.
INSERT INTO semaphore_moves (
  job_id, rev, delta, root_ledger, hit, guid, digits, guid_ledger, acked_at, dimension, name, occurrence, activity_rev,
  activity_ledger
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
