-- pruned_of: what the log of removals says of a job, in its order.
-- takes: job_id text
SELECT @names(PrunedRow) FROM pruned WHERE job_id = :job_id ORDER BY seq
