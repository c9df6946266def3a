-- picture_early: the words of children of these jobs that ended before their group was complete.
SELECT @names(Message, m)
  FROM unnest($1::text[]) AS wanted (job_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM messages
        WHERE messages.job_id = wanted.job_id AND messages.kind = 'child' AND messages.acked_at IS NULL
       OFFSET 0) AS m
