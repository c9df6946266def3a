-- queues: a page of the queues that have a row, by their names.
-- takes: after text, limit int
SELECT @names(Queue)
  FROM queues
 WHERE queue > :after
 ORDER BY queue
 LIMIT :limit
