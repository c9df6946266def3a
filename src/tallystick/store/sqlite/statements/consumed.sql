-- consumed: whether the work of a message is durable, and whether it is taken. The word to turn again answers no
-- activity: running is taking it.
SELECT ledger / 10000000000 % 10 = 1, ledger / 10000000000 % 10 = 1 OR (kind = 'resume' AND name = 'again')
  FROM messages
 WHERE guid = ?1 AND job_id = ?2
