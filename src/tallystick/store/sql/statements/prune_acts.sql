-- prune_acts: what people did to jobs that are marked as pruned goes. No row changed: there was none.
-- takes: jobs list
DELETE FROM acts WHERE about = 'job' AND name IN :jobs
