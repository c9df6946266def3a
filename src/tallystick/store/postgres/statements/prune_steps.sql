-- prune_steps: the steps of jobs that are marked as pruned go. No row changed: there were none.
DELETE FROM steps WHERE job_id IN (SELECT jsonb_array_elements_text($1::jsonb))
