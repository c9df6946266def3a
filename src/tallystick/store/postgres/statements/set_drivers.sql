-- set_drivers: the messages because of which attempts were opened; part of their claim. It fails unless all were set ($2).
WITH driven AS (
  UPDATE attempts
     SET guid = listed.guid
    FROM jsonb_to_recordset($1::jsonb) AS listed (job_id text, attempt bigint, guid text)
   WHERE attempts.job_id = listed.job_id AND attempts.unit = '' AND attempts.attempt = listed.attempt
     AND attempts.status = 'IN_PROGRESS'
  RETURNING 1
)
SELECT expect_rows('set_drivers', (SELECT count(*) FROM driven), $2::bigint)
