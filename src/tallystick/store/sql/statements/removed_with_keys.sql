-- removed_with_keys: a page of jobs of which the log of removals says that keys of effects were left.
-- takes: after text, limit int
SELECT DISTINCT job_id FROM pruned WHERE job_id > :after AND keys <> '' ORDER BY job_id LIMIT :limit
