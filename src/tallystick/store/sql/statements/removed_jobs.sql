-- removed_jobs: a page of whole jobs that the log names behind one of its lines, by their identifiers.
-- takes: after text, behind int, limit int
SELECT @names(PrunedRow) FROM pruned WHERE job_id > :after AND whole = 1 AND seq > :behind ORDER BY job_id LIMIT :limit
