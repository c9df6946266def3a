-- picture_inbox: the newest arrival in the inbox of a job, and when that was written. No row: nothing waits there.
SELECT arrived, created_at
  FROM messages INDEXED BY messages_inbox
 WHERE job_id = ?1 AND acked_at IS NULL
 ORDER BY arrived DESC
 LIMIT 1
