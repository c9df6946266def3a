-- drop_activities: what is still open when the job ends, or turns, is dropped with it. The count is how many obligations
-- that closes. Nothing changes unless the job is open and in this attempt.
UPDATE steps INDEXED BY steps_open
   SET state = 'CANCELLED', completed_at = ?3, rev = rev + 1
 WHERE job_id = ?1 AND completed_at IS NULL
   AND EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = steps.job_id AND j.attempt = ?2 AND j.completed_at IS NULL)
