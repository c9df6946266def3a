-- release_job: the job is due again at $3, or held; runs after `end_attempt` in the same bundle. A hold that somebody set
-- meanwhile stays.
-- No row changed: the job moved on under another attempt.
UPDATE jobs
   SET ready_at = $3, hold = coalesce($4, hold), hold_reason = coalesce($5, hold_reason), head_n = $6, head_hash = $7, updated_at = $8, rev = rev + 1
 WHERE job_id = $1 AND attempt = $2 AND state IN ('IN_PROGRESS', 'CANCELLING') AND ready_at IS NULL
