-- forget_sqlite_stat1: drop what ANALYZE counted in these tables.
DELETE FROM sqlite_stat1 WHERE tbl IN (SELECT ours.value FROM json_each(?1) AS ours)
