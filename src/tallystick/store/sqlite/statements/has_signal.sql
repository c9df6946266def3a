-- has_signal: whether a signal of one of these names waits in the inbox of a job.
SELECT EXISTS (SELECT 1
                 FROM messages INDEXED BY messages_waiting
                WHERE job_id = ?1 AND acked_at IS NULL AND kind = 'signal' AND ledger / 10000000000 % 10 = 0
                  AND name IN (SELECT wanted.value FROM json_each(?2) AS wanted))
