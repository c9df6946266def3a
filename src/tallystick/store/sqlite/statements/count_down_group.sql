-- count_down_group: move the semaphore of a group, mark its message, write the closer digit; returns whether it hit.
-- No row: there is no such group. A failure of the CHECK is an underflow, of MARKER a second delivery.
INSERT INTO closings (job_id, dimension, name, occurrence, guid, delta, threshold, hit)
SELECT job_id, dimension, name, occurrence, ?5, ?6, ?7, semaphore + ?6 = ?7 AND ?6 <> 0
  FROM steps
 WHERE job_id = ?1 AND dimension = ?2 AND name = ?3 AND occurrence = ?4 AND kind = 'group' AND state = 'IN_PROGRESS'
RETURNING hit
