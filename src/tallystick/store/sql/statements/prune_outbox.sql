-- prune_outbox: the directives of jobs that are marked as pruned go. No row changed: there were none.
-- takes: jobs list
DELETE FROM outbox WHERE job_id IN :jobs
