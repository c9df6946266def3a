-- next_end: when the next grace or deadline is over.
SELECT min(at)
  FROM (SELECT min(cancel_at) AS at FROM jobs WHERE state = 'CANCELLING'
        UNION ALL
        SELECT at
          FROM (SELECT deadline_at AS at
                  FROM jobs
                 WHERE deadline_at IS NOT NULL AND completed_at IS NULL AND state <> 'CANCELLING'
                 ORDER BY deadline_at
                 LIMIT 1))
