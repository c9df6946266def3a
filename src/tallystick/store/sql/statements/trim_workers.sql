-- trim_workers: workers that were not heard of since an instant are forgotten.
-- takes: heard_at int
DELETE FROM workers WHERE heard_at < :heard_at
