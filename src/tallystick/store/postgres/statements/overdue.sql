-- overdue: jobs that were asked to end and have not, and whose grace is over.
-- $1 how many, $2 wall time if it is not this server's.
SELECT job_id
  FROM jobs
 WHERE asked_at IS NOT NULL AND asked_at <= (SELECT store_ms($2::bigint))
 ORDER BY asked_at
 LIMIT $1::bigint
