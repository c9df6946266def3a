-- end_woken_job: end jobs that a message drove: what each still has open, that message (1) or nothing (0), is closed, and
-- the result written with it. Runs after `end_attempt`, and after `close_driver` where that closes the message.
-- Fewer rows changed than given: a job moved on, or is being cancelled and wants to end otherwise, or obligations are open.
UPDATE jobs
   SET state = given.state,
       result = given.result,
       error = given.error,
       error_code = given.error_code,
       error_message = given.error_message,
       hold = NULL,
       hold_reason = NULL,
       semaphore = 0,
       completed_at = given.at,
       updated_at = given.at,
       head_n = given.head_n,
       head_hash = given.head_hash,
       rev = rev + 1
  FROM (SELECT column1 AS job_id, column2 AS attempt, column3 AS state, column4 AS result, column5 AS error,
               column6 AS error_code, column7 AS error_message, column8 AS head_n, column9 AS head_hash,
               column10 AS at, column11 AS open
          FROM (VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11))) AS given
 WHERE jobs.job_id = given.job_id AND jobs.attempt = given.attempt
   AND jobs.state = iif(given.state = 'CANCELLED', 'CANCELLING', 'IN_PROGRESS') AND semaphore = given.open
   AND start_acked_at IS NOT NULL
