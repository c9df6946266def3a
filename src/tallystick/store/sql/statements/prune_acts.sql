-- prune_acts: what people said to jobs that are marked as pruned goes; the lines keep their places in the chain. No row
-- changed: there was none.
-- takes: jobs list
UPDATE acts SET verb = '', who = '', told = '' WHERE about = 'job' AND name IN :jobs
