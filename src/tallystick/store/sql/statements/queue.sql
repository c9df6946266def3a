-- queue: one queue that has a row.
-- takes: queue text
SELECT @names(Queue) FROM queues WHERE queue = :queue
