-- picture_signals: the first signals of a name that wait for a job, oldest first. $1 a list of job, name and how many
-- (null: all).
SELECT @names(Message, m)
  FROM jsonb_array_elements($1::jsonb) AS r
 CROSS JOIN LATERAL (
       SELECT *
         FROM messages
        WHERE messages.job_id = r ->> 0 AND messages.kind = 'signal' AND messages.name = r ->> 1 AND messages.acked_at IS NULL
        ORDER BY messages.job_id, messages.kind, messages.name, messages.arrived
        LIMIT (r ->> 2)::bigint) AS m
