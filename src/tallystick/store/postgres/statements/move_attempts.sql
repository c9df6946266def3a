-- move_attempts: attempts end, by their holders while the lease is live (`live`) or by a sweep once it is not. It fails
-- unless all did. `lock_attempts` comes before it.
-- takes: list jsonb, epoch text, lease_now int, wall_now int, count int
WITH ending AS MATERIALIZED (
  SELECT @read(MoveAttempt, r) FROM jsonb_array_elements(:list) AS r
), found AS MATERIALIZED (
  SELECT ending.*, a.*
    FROM ending
   CROSS JOIN LATERAL (
         SELECT attempts.ctid AS attempt_at
           FROM attempts
          WHERE attempts.job_id = ending.job_id AND attempts.unit = '' AND attempts.attempt = ending.attempt
            AND attempts.lease_id = ending.lease_id AND attempts.status = ending.before
            AND (attempts.lease_epoch = :epoch AND attempts.lease_expires_at > store_ms(:lease_now)) = ending.live
         OFFSET 0) AS a
), ended AS (
  UPDATE attempts
     SET status = found.status, reason = found.reason, charged = found.charged::int, finished_at = store_ms(:wall_now)
    FROM found
   WHERE attempts.ctid = found.attempt_at
  RETURNING 1
)
SELECT expect_rows('move_attempts', (SELECT count(*) FROM ended), :count)
