-- drop_activities: what is still open when the job ends is dropped with it.
UPDATE steps SET state = 'CANCELLED', completed_at = $2, rev = rev + 1 WHERE job_id = $1 AND completed_at IS NULL
