-- refill: the bucket of a queue is full.
-- takes: queue text
UPDATE queues SET full_us = 0 WHERE queue = :queue
