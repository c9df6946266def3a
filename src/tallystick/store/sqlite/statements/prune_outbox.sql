-- prune_outbox: the directives of jobs that are marked as pruned go. No row changed: there were none.
DELETE FROM outbox WHERE job_id IN (SELECT value FROM json_each(?1))
