-- drop_activities: what is still open when the job ends, or turns, is dropped with it. The count is how many that were.
UPDATE steps INDEXED BY steps_open
   SET state = ?2, completed_at = ?3, rev = rev + 1
 WHERE job_id = ?1 AND completed_at IS NULL AND kind <> 'protocol'
