-- taken_slots: the slots of a queue that count now, removed or not.
-- takes: queue text
SELECT @names(Slot) FROM queue_slots WHERE queue = :queue AND @part(taken, queue_slots) ORDER BY job_id
