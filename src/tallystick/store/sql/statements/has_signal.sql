-- has_signal: whether a signal of one of these names waits in the inbox of a job; one that has begun was taken.
-- takes: job_id text, names list
SELECT EXISTS (SELECT 1
                 FROM messages @indexed(messages_waiting)
                WHERE job_id = :job_id AND acked_at IS NULL AND kind = 'signal' AND ledger / 10000000000 % 10 = 0
                  AND name IN :names)
