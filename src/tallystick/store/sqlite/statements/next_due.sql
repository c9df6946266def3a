-- next_due: when the next job of a queue and priority becomes due.
SELECT min(ready_at) FROM jobs WHERE queue = ?1 AND priority = ?2 AND ready_at IS NOT NULL AND hold IS NULL
