-- picture_words: what waits for a job besides signals, of these kinds and due at ?3.
SELECT @names(Message)
  FROM messages INDEXED BY messages_waiting
 WHERE job_id = ?1 AND kind = ?2 AND acked_at IS NULL AND (due_at IS NULL OR due_at <= ?3)
