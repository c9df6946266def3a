-- statistics: which tables ANALYZE has left in this file.
SELECT name FROM sqlite_schema WHERE name IN ('sqlite_stat1', 'sqlite_stat4')
