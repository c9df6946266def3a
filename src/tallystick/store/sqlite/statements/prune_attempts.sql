-- prune_attempts: the attempts of jobs that are marked as pruned go. No row changed: there were none.
DELETE FROM attempts WHERE job_id IN (SELECT value FROM json_each(?1))
