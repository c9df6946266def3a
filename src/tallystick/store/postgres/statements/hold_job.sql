-- hold_job: set the flag that keeps a job from being claimed; the head of the chain moves if a fact goes with it.
-- No row changed: it is held already, is being cancelled, has ended, or was claimed since it was read.
UPDATE jobs
   SET hold = $3, hold_reason = $4, head_n = coalesce($5::bigint, head_n), head_hash = coalesce($6::bytea, head_hash),
       updated_at = $7, rev = rev + 1
 WHERE job_id = $1 AND attempt = $2 AND hold IS NULL AND state IN ('QUEUED', 'DISPATCHING', 'IN_PROGRESS')
