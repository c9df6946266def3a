-- forget_sqlite_stat4: drop the rows that ANALYZE sampled in these tables.
DELETE FROM sqlite_stat4 WHERE tbl IN (SELECT ours.value FROM json_each(?1) AS ours)
