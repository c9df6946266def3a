-- picture_entered: the activities that messages name, be they open or not: messages by their identifiers ($1), what drives the
-- attempts at jobs ($2), and what of those has begun.
SELECT @names(Activity, s)
  FROM (SELECT wanted.guid FROM unnest($1::text[]) AS wanted (guid)
        UNION ALL
        SELECT a.guid
          FROM unnest($2::text[]) AS held (job_id)
         CROSS JOIN LATERAL (
               SELECT guid
                 FROM attempts
                WHERE attempts.job_id = held.job_id AND attempts.unit = ''
                  AND @is(held, attempts.status)
               OFFSET 0) AS a
        UNION ALL
        SELECT b.guid
          FROM unnest($2::text[]) AS held (job_id)
         CROSS JOIN LATERAL (
               SELECT guid
                 FROM messages
                WHERE messages.job_id = held.job_id AND messages.acked_at IS NULL AND messages.ledger > 0
               OFFSET 0) AS b) AS wanted
 CROSS JOIN LATERAL (SELECT * FROM messages WHERE messages.guid = wanted.guid AND messages.occurrence IS NOT NULL OFFSET 0) AS m
 CROSS JOIN LATERAL (
       SELECT *
         FROM steps
        WHERE steps.job_id = m.job_id AND steps.dimension = m.dimension AND steps.name = m.name
          AND steps.occurrence = m.occurrence
       OFFSET 0) AS s
