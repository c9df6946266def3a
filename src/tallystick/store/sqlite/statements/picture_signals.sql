-- picture_signals: the first signals of a name that wait for a job, oldest first.
SELECT @names(Message)
  FROM messages INDEXED BY messages_waiting
 WHERE job_id = ?1 AND kind = 'signal' AND name = ?2 AND acked_at IS NULL
 ORDER BY arrived
 LIMIT ?3
