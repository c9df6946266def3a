-- tell_hook: what came of the call of a hook: it is told, or owed again from an instant on, and what the call raised.
-- No row changed: it was told meanwhile, or another worker has it, or the job was resumed.
-- takes: job_id text, tries int, told text, at int, tries_left int, error text
UPDATE jobs
   SET hook_told = coalesce(:told, hook_told), hook_at = :at, hook_tries = :tries_left, hook_error = :error, rev = rev + 1
 WHERE job_id = :job_id AND hook_tries = :tries AND hook_due IS NOT NULL
RETURNING job_id
