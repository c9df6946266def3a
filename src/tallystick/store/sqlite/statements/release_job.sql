-- release_job: the job is due again, or held; runs after `end_attempts` in the same bundle. A hold that was set
-- meanwhile stays.
-- No row changed: the job moved on under another attempt.
-- takes: job_id, attempt, ready_at, hold, hold_reason, head_n, head_hash, at
UPDATE jobs
   SET ready_at = :ready_at, hold = coalesce(:hold, hold), hold_reason = coalesce(:hold_reason, hold_reason), head_n = :head_n,
       head_hash = :head_hash, updated_at = :at, rev = rev + 1
 WHERE job_id = :job_id AND attempt = :attempt AND state IN ('IN_PROGRESS', 'CANCELLING') AND ready_at IS NULL
