-- queue_turn: one queue that has a row, where its claims stand, when the first bucket of a key is full, and how many slots it has.
-- takes: queue text
SELECT @names(Queue, q), q.turn, q.full_us,
       (SELECT min(b.full_us) FROM queue_buckets AS b WHERE b.queue = q.queue),
       (SELECT count(*) FROM queue_slots AS s WHERE s.queue = q.queue)
  FROM queues AS q
 WHERE q.queue = :queue
