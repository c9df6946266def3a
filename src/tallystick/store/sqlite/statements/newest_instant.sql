-- newest_instant: the latest instant among the facts that were written last; zero for a file without any.
SELECT coalesce(max(at), 0) FROM (SELECT at FROM events ORDER BY rowid DESC LIMIT 100)
