-- picture_begun: the messages of jobs that have begun and are not acknowledged.
-- takes: jobs list
SELECT @names(Message, messages)
  FROM :jobs
 CROSS JOIN messages INDEXED BY messages_begun
 WHERE messages.job_id = wanted.value AND messages.acked_at IS NULL AND messages.ledger > 0
