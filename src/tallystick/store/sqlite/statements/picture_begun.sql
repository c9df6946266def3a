-- picture_begun: the messages of a job that have begun and are not acknowledged.
SELECT @names(Message)
  FROM messages INDEXED BY messages_begun
 WHERE job_id = ?1 AND acked_at IS NULL AND ledger > 0
