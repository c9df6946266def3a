-- picture_signals: of each job and name the first signals that wait, so many of each.
-- takes: signals list, limit
SELECT @names(Message, messages)
  FROM :signals
 CROSS JOIN messages
 WHERE messages.guid IN (SELECT waiting.guid
                           FROM messages AS waiting INDEXED BY messages_waiting
                          WHERE waiting.job_id = wanted.value ->> 0 AND waiting.kind = 'signal'
                            AND waiting.name = wanted.value ->> 1 AND waiting.acked_at IS NULL
                          ORDER BY waiting.arrived
                          LIMIT :limit)
