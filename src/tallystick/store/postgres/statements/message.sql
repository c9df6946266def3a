-- message: whether a message is known.
SELECT job_id, acked_at FROM messages WHERE guid = $1
