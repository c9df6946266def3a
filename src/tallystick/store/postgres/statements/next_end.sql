-- next_end: when the next grace or deadline is over, and what time it is now, because the caller may have another clock.
-- $1 wall time if it is not this server's.
SELECT least((SELECT asked_at FROM jobs WHERE asked_at IS NOT NULL ORDER BY asked_at LIMIT 1),
             (SELECT open_deadline
                FROM jobs
               WHERE open_deadline IS NOT NULL AND asked_at IS NULL
               ORDER BY open_deadline
               LIMIT 1)),
       store_ms($1::bigint)
