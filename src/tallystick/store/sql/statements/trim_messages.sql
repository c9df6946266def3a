-- trim_messages: the messages of turns that are written down as trimmed go. What was not taken stays, and so does a signal
-- with an id: its sender may send it again, and it must be known then. No row changed: there were none.
-- takes: job_id text, dimension int
DELETE FROM messages
 WHERE job_id = :job_id AND redeliveries >= 0 AND dimension <= :dimension AND acked_at IS NOT NULL
   AND NOT (kind = 'signal' AND substr(guid, 1, length(job_id) + 1) = job_id || ':')
