-- messages: a page of what arrived for a job, in the order of the identifiers.
-- takes: job_id text, after text, limit int
SELECT @names(Message)
  FROM messages
 WHERE job_id = :job_id AND redeliveries >= 0 AND guid > :after
 ORDER BY guid
 LIMIT :limit
