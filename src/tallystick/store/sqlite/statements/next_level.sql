-- next_level: the best priority of a queue behind ?2 that holds anything to claim; NULL when there is none.
SELECT min(priority) FROM jobs WHERE queue = ?1 AND priority > ?2 AND ready_at IS NOT NULL AND hold IS NULL
