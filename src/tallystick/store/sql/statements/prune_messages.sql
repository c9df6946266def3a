-- prune_messages: the messages of jobs that are marked as pruned go. No row changed: there were none.
-- takes: jobs list
DELETE FROM messages WHERE job_id IN :jobs AND redeliveries >= 0
