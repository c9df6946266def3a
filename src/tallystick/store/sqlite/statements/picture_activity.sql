-- picture_activity: one activity by its place. No row: it has not begun.
SELECT job_id, dimension, name, occurrence, kind, state, ledger, rev, attempt, semaphore, threshold, failed, payload
  FROM steps
 WHERE job_id = ?1 AND dimension = ?2 AND name = ?3 AND occurrence = ?4
