-- slots: the slots of a queue.
-- takes: queue text
SELECT @names(Slot) FROM queue_slots WHERE queue = :queue
