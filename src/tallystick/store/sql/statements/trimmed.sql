-- trimmed: the newest line in the log of removals about turns of a job. No row: all its turns are there.
-- takes: job_id text
SELECT @names(PrunedRow) FROM pruned WHERE job_id = :job_id AND whole = 0 ORDER BY seq DESC LIMIT 1
