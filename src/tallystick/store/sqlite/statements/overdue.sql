-- overdue: jobs that were asked to end and have not, and whose grace is over; and (1) those whose deadline has passed.
SELECT job_id, late
  FROM (SELECT job_id, 0 AS late FROM jobs WHERE state = 'CANCELLING' AND cancel_at <= ?1 ORDER BY cancel_at LIMIT ?2)
UNION ALL
SELECT job_id, late
  FROM (SELECT job_id, 1 AS late
          FROM jobs
         WHERE deadline_at <= ?1 AND completed_at IS NULL AND state <> 'CANCELLING'
         ORDER BY deadline_at
         LIMIT ?2)
