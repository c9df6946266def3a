-- trim_stale_reports: keep the newest; people look at the last ones, and nothing grows without bound.
-- takes: keep int
DELETE FROM stale_reports WHERE id <= (SELECT max(id) FROM stale_reports) - :keep
