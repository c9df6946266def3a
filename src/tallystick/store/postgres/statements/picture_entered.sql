-- picture_entered: the activities that the messages of `picture_messages` name, be they open or not; the same parameters.
SELECT @names(Activity, s)
  FROM unnest(ARRAY(SELECT unnest($1::text[])
                    UNION
                    SELECT a.guid
                      FROM attempts AS a
                     WHERE a.job_id = ANY ($2::text[]) AND a.unit = '' AND a.status IN ('LEASED', 'IN_PROGRESS', 'COMMITTED')
                    UNION
                    SELECT b.guid FROM messages AS b WHERE b.job_id = ANY ($2::text[]) AND b.acked_at IS NULL AND b.ledger > 0))
         AS wanted (guid)
 CROSS JOIN LATERAL (SELECT * FROM messages WHERE messages.guid = wanted.guid AND messages.occurrence IS NOT NULL OFFSET 0) AS m
 CROSS JOIN LATERAL (
       SELECT *
         FROM steps
        WHERE steps.job_id = m.job_id AND steps.dimension = m.dimension AND steps.name = m.name
          AND steps.occurrence = m.occurrence
       OFFSET 0) AS s
