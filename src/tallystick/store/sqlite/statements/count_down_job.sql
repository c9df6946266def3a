-- count_down_job: move the semaphore of a whole job, mark its message, write the closer digit; returns whether it hit.
-- No row: there is no such open job. A failure of the CHECK is an underflow, of MARKER a second delivery.
INSERT INTO closings (job_id, dimension, name, occurrence, guid, delta, threshold, hit)
SELECT job_id, dimension, '', 0, ?2, ?3, ?4, semaphore + ?3 = ?4 AND ?3 <> 0
  FROM jobs
 WHERE job_id = ?1 AND completed_at IS NULL
RETURNING hit
