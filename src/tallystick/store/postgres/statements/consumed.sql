-- consumed: whether the work of a message is durable. The word to turn again answers no activity: running is taking it.
SELECT (ledger / 10000000000 % 10 = 1 OR (kind = 'resume' AND name = 'again'))::int FROM messages WHERE guid = $1 AND job_id = $2
