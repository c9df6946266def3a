-- buckets: the buckets of these keys of a queue; those that are not here are full.
-- takes: queue text, keys list
SELECT limit_key, full_us FROM queue_buckets WHERE queue = :queue AND limit_key IN :keys
