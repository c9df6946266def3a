-- has_books: whether the schema exists yet.
SELECT count(*) FROM sqlite_schema WHERE name = 'jobs'
