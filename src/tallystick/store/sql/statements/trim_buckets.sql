-- trim_buckets: forget the buckets of a queue that are full since an instant.
-- takes: queue text, since_us int
DELETE FROM queue_buckets WHERE queue = :queue AND full_us <= :since_us
