-- timer_due: when the timer of a wait fires, as it was set when the wait was opened; null without one.
SELECT min(due_at)
  FROM messages
 WHERE guid = ?1 || ':' || ?2 || ':' || ?3 || '#' || ?4 || ':timer' AND job_id = ?1 AND kind = 'timer' AND acked_at IS NULL
