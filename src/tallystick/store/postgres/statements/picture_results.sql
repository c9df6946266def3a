-- picture_results: how remote steps of these jobs have ended whose results were not taken.
SELECT @names(Message, m)
  FROM unnest($1::text[]) AS wanted (job_id)
 CROSS JOIN LATERAL (
       SELECT *
         FROM messages
        WHERE messages.job_id = wanted.job_id AND messages.kind = 'result' AND messages.acked_at IS NULL
       OFFSET 0) AS m
