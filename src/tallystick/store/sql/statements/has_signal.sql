-- has_signal: whether a signal of one of these names waits in the inbox of a job; one whose work is durable was taken.
-- takes: job_id text, names list, work_done int
SELECT EXISTS (SELECT 1
                 FROM messages @indexed(messages_waiting)
                WHERE job_id = :job_id AND acked_at IS NULL AND kind = 'signal' AND ledger < :work_done
                  AND name IN :names)
