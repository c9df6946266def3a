-- count_stale_reports: how many reports came too late, and when the last did. Only old rows are ever trimmed, so the
-- newest number is the count since the beginning.
SELECT coalesce(max(id), 0), max(at) FROM stale_reports
