-- any_unread: a row if any message of any job waits to be taken, by the index that holds only those.
SELECT 1 FROM messages WHERE acked_at IS NULL LIMIT 1
