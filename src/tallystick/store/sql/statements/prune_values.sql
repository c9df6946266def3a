-- prune_values: what jobs showed that are marked as pruned goes. No row changed: there was none.
-- takes: jobs list
DELETE FROM job_values WHERE job_id IN :jobs
