-- prune_jobs: the jobs themselves, last of all, of jobs that are marked as pruned go. No row changed: there were none.
DELETE FROM jobs WHERE job_id IN (SELECT value FROM json_each(?1)) AND pruned_at IS NOT NULL
