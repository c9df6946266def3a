-- end_attempt: attempts end, each by its holder while the lease is live.
-- Fewer rows changed than given: a report is stale.
UPDATE attempts
   SET status = given.status, reason = given.reason, charged = given.charged, finished_at = given.at
  FROM (SELECT column1 AS job_id, column2 AS attempt, column3 AS lease_id, column4 AS status, column5 AS reason,
               column6 AS charged, column7 AS epoch, column8 AS boot, column9 AS at
          FROM (VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9))) AS given
 WHERE attempts.job_id = given.job_id AND unit = '' AND attempts.attempt = given.attempt
   AND attempts.lease_id = given.lease_id AND attempts.status = 'IN_PROGRESS'
   AND lease_epoch = given.epoch AND lease_expires_at > given.boot
