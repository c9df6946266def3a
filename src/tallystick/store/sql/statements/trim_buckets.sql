-- trim_buckets: forget the buckets of a queue that are full again.
-- takes: queue text, now_us int
DELETE FROM queue_buckets WHERE queue = :queue AND full_us <= :now_us
