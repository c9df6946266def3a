-- open_wait: an activity of the job that waits for a message, if there is one; its leg 1 is complete while it is open.
SELECT state FROM steps WHERE job_id = ?1 AND dimension = ?2 AND name = ?3 AND occurrence = ?4
