-- put_bucket: tokens of a key are spent.
-- takes: queue text, limit_key text, full_us int
INSERT INTO queue_buckets (queue, limit_key, full_us)
VALUES (:queue, :limit_key, :full_us)
    ON CONFLICT (queue, limit_key) DO UPDATE SET full_us = excluded.full_us
