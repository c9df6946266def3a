-- prune_events: the facts of jobs that are marked as pruned go. No row changed: there were none.
-- takes: jobs list
DELETE FROM events WHERE job_id IN :jobs
