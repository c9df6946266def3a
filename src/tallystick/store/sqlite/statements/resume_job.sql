-- resume_job: take the flag away that was read (?3); a job that is due can be claimed at once.
-- No row changed: it is held no longer, or for another reason, or has ended, or was claimed since it was read.
UPDATE jobs
   SET hold = NULL, hold_reason = NULL, head_n = coalesce(?4, head_n), head_hash = coalesce(?5, head_hash),
       updated_at = ?6, rev = rev + 1
 WHERE job_id = ?1 AND attempt = ?2 AND hold = ?3 AND completed_at IS NULL
