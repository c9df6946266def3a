-- picture_messages: messages by their identifiers ($1), the words that groups are closed to which jobs that may end belong
-- ($2), what drives the attempts at jobs ($3), and what of those has begun or is the word to go on.
SELECT @names(Message, m)
  FROM unnest(ARRAY(SELECT unnest($1::text[])
                    UNION
                    SELECT 'join:' || j.parent_job_id || ':' || j.parent_step
                      FROM jobs AS j
                     WHERE j.job_id = ANY ($2::text[]) AND j.parent_step IS NOT NULL
                    UNION
                    SELECT a.guid
                      FROM attempts AS a
                     WHERE a.job_id = ANY ($3::text[]) AND a.unit = '' AND @is(held, a.status)
                    UNION
                    SELECT b.guid FROM messages AS b WHERE b.job_id = ANY ($3::text[]) AND b.acked_at IS NULL AND b.ledger > 0
                    UNION
                    SELECT w.guid
                      FROM messages AS w
                     WHERE w.job_id = ANY ($3::text[]) AND w.kind = 'resume' AND w.acked_at IS NULL)) AS wanted (guid)
 CROSS JOIN LATERAL (SELECT * FROM messages WHERE messages.guid = wanted.guid OFFSET 0) AS m
