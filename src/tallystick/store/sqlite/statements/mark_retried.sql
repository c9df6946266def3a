-- mark_retried: a job that has failed learns which job took its place. No row changed: another did already.
UPDATE jobs SET retried_as = ?2, rev = rev + 1 WHERE job_id = ?1 AND state = 'FAILED_FINAL' AND retried_as IS NULL
