-- prune_attempts: the attempts of jobs that are marked as pruned go. No row changed: there were none.
-- takes: jobs list
DELETE FROM attempts WHERE job_id IN :jobs
