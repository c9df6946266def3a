-- next_due: when the next job of a queue and priority becomes due after an instant.
SELECT min(ready_at) FROM jobs WHERE queue = ?1 AND priority = ?2 AND ready_at > ?3 AND ready_at IS NOT NULL AND hold IS NULL
