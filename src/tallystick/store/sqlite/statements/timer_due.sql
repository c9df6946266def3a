-- timer_due: when the timer of a wait fires, as it was set when the wait was opened; null without one.
SELECT min(due_at)
  FROM messages INDEXED BY messages_inbox
 WHERE job_id = ?1 AND dimension = ?2 AND name = ?3 AND occurrence = ?4 AND kind = 'timer' AND acked_at IS NULL
