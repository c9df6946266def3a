-- end_job: steps 2 and 3 of start messages in one statement: each semaphore falls, the closer digit is written if it
-- reached zero, and the result with it. Runs after `end_attempt` in the same bundles.
-- Fewer rows changed than given: a job moved on, or is being cancelled and wants to end otherwise, or obligations are open.
UPDATE jobs
   SET state = given.state,
       result = given.result,
       error = given.error,
       error_code = given.error_code,
       error_message = given.error_message,
       hold = NULL,
       hold_reason = NULL,
       semaphore = semaphore - 1,
       start_ledger = start_ledger + 11000000000 + 100100000000 * (semaphore - 1 = 0),
       start_acked_at = given.at,
       completed_at = given.at,
       updated_at = given.at,
       head_n = given.head_n,
       head_hash = given.head_hash,
       rev = rev + 1
  FROM (SELECT column1 AS job_id, column2 AS attempt, column3 AS state, column4 AS result, column5 AS error,
               column6 AS error_code, column7 AS error_message, column8 AS head_n, column9 AS head_hash,
               column10 AS at
          FROM (VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10))) AS given
 WHERE jobs.job_id = given.job_id AND jobs.attempt = given.attempt
   AND jobs.state = iif(given.state = 'CANCELLED', 'CANCELLING', 'IN_PROGRESS') AND semaphore = 1
   AND start_ledger / 10000000000 % 10 = 0 AND start_ledger / 1000000000 % 10 = 0
