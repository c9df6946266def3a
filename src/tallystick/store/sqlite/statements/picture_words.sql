-- picture_words: what waits for jobs besides signals, of these kinds and due by now.
-- takes: jobs list, kind, or_kind, or_that, wall
SELECT @names(Message, messages)
  FROM :jobs
 CROSS JOIN messages INDEXED BY messages_waiting
 WHERE messages.job_id = wanted.value AND messages.kind IN (:kind, :or_kind, :or_that) AND messages.acked_at IS NULL
   AND (messages.due_at IS NULL OR messages.due_at <= :wall)
