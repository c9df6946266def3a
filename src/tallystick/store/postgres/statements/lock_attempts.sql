-- lock_attempts: hold the attempts that end, job by job. A renewal that is under way changes such a row where the next
-- statement would look for it; after this one it is over, and others pass the row by.
-- takes: list jsonb
WITH ending AS MATERIALIZED (
  SELECT @read(MoveAttempt, r) FROM jsonb_array_elements(:list) AS r ORDER BY 1
)
SELECT 1
  FROM ending
 CROSS JOIN LATERAL (
       SELECT 1
         FROM attempts
        WHERE attempts.job_id = ending.job_id AND attempts.unit = '' AND attempts.attempt = ending.attempt
          FOR NO KEY UPDATE) AS a
