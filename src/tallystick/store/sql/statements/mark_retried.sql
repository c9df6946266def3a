-- mark_retried: a job that has failed learns which job took its place. No row changed: another did already.
-- takes: job_id text, new_id text
UPDATE jobs
   SET retried_as = :new_id, rev = rev + 1
 WHERE job_id = :job_id AND state = 'FAILED_FINAL' AND retried_as IS NULL
