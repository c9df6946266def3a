-- overdue: jobs that were asked to end and have not, and whose grace is over; and those whose deadline has passed.
-- $1 how many, $2 wall time if it is not this server's.
SELECT over.job_id, false
  FROM (SELECT job_id
          FROM jobs
         WHERE asked_at IS NOT NULL AND asked_at <= (SELECT store_ms($2::bigint))
         ORDER BY asked_at
         LIMIT $1::bigint) AS over
UNION ALL
SELECT late.job_id, true
  FROM (SELECT job_id
          FROM jobs
         WHERE open_deadline IS NOT NULL AND open_deadline <= (SELECT store_ms($2::bigint)) AND asked_at IS NULL
         ORDER BY open_deadline
         LIMIT $1::bigint) AS late
