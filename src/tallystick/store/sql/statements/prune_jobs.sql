-- prune_jobs: the jobs themselves, last of all, of jobs that are marked as pruned go. No row changed: there were none.
-- takes: jobs list
DELETE FROM jobs WHERE job_id IN :jobs AND pruned_at IS NOT NULL
