-- has_books: whether the schema exists yet.
SELECT count(to_regclass('jobs'))
