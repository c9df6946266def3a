-- prune_jobs: the jobs themselves, last of all, of jobs that are marked as pruned go. No row changed: there were none.
DELETE FROM jobs WHERE job_id IN (SELECT jsonb_array_elements_text($1::jsonb)) AND pruned_at IS NOT NULL
