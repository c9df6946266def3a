-- move_attempts: attempts end, by their holders while the lease is live (`live`) or by a sweep once it is not. $1 the list,
-- $2 the clock the leases are on, $3 and $4 lease and wall time if they are not this server's. It fails unless all did ($5).
WITH ending AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($1::jsonb) AS listed (
    job_id text, attempt bigint, lease_id text, before text, status text, reason text, charged boolean, live boolean)
), found AS MATERIALIZED (
  SELECT ending.*, a.*
    FROM ending
   CROSS JOIN LATERAL (
         SELECT attempts.ctid AS attempt_at
           FROM attempts
          WHERE attempts.job_id = ending.job_id AND attempts.unit = '' AND attempts.attempt = ending.attempt
            AND attempts.lease_id = ending.lease_id AND attempts.status = ending.before
            AND (attempts.lease_epoch = $2 AND attempts.lease_expires_at > store_ms($3::bigint)) = ending.live
         OFFSET 0) AS a
), ended AS (
  UPDATE attempts
     SET status = found.status, reason = found.reason, charged = found.charged::int, finished_at = store_ms($4::bigint)
    FROM found
   WHERE attempts.ctid = found.attempt_at
  RETURNING 1
)
SELECT expect_rows('move_attempts', (SELECT count(*) FROM ended), $5::bigint)
