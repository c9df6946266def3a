-- free_slots: remove the slots of a queue that do not count any more.
-- takes: queue text
DELETE FROM queue_slots WHERE queue = :queue AND NOT @part(taken, queue_slots)
