-- prune_steps: the steps of jobs that are marked as pruned go. No row changed: there were none.
-- takes: jobs list
DELETE FROM steps WHERE job_id IN :jobs
