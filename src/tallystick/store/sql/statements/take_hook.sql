-- take_hook: the right to call the hook that is owed to a job, until an instant. Returns where the job stands.
-- No row changed: none is owed, or not yet, or another worker has it.
-- takes: job_id text, tries int, wall int, until int
UPDATE jobs
   SET hook_at = :until, hook_tries = hook_tries + 1, rev = rev + 1
 WHERE job_id = :job_id AND hook_tries = :tries AND hook_due <= :wall
RETURNING state, hold, hook_told
