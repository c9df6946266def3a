-- trim_stale_reports: keep the newest $1; people look at the last ones, and nothing grows without bound.
DELETE FROM stale_reports WHERE id <= (SELECT max(id) FROM stale_reports) - $1::bigint
