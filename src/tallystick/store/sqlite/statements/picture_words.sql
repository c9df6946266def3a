-- picture_words: what waits for a job besides signals, of these kinds and due by now.
-- takes: job_id, kind, or_kind, or_that, wall
SELECT @names(Message)
  FROM messages INDEXED BY messages_waiting
 WHERE job_id = :job_id AND kind IN (:kind, :or_kind, :or_that) AND acked_at IS NULL AND (due_at IS NULL OR due_at <= :wall)
