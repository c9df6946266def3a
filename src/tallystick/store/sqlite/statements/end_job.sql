-- end_job: steps 2 and 3 of start messages, and with them the ends of jobs that have nothing else open: each semaphore
-- falls to zero, the digits of start and root are those of a closer, and the result is there. Runs after `end_attempt`.
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
       root_ledger = given.root_ledger,
       start_ledger = given.start_ledger,
       start_acked_at = given.at,
       completed_at = given.at,
       updated_at = given.at,
       head_n = given.head_n,
       head_hash = given.head_hash,
       rev = rev + 1
  FROM (SELECT column1 AS job_id, column2 AS attempt, column3 AS state, column4 AS result, column5 AS error,
               column6 AS error_code, column7 AS error_message, column8 AS head_n, column9 AS head_hash,
               column10 AS at, column11 AS root_before, column12 AS root_ledger, column13 AS start_before,
               column14 AS start_ledger
          FROM (VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14))) AS given
 WHERE jobs.job_id = given.job_id AND jobs.attempt = given.attempt AND jobs.state = 'IN_PROGRESS' AND semaphore = 1
   AND jobs.root_ledger = given.root_before AND jobs.start_ledger = given.start_before
