-- move_activity: the row of an activity as a decision wants it, guarded by its revision.
-- No row changed: it is not as it was when it was looked at.
UPDATE steps
   SET state = ?6, ledger = ?7, rev = ?8, attempt = ?9, completed_at = ?10, result = ?11, n = ?12, prev_hash = ?13, event_hash = ?14
 WHERE job_id = ?1 AND dimension = ?2 AND name = ?3 AND occurrence = ?4 AND rev = ?5
