-- held: the newest jobs that wait for a person.
-- takes: limit int
SELECT @names(Book) FROM job_books WHERE hold IS NOT NULL ORDER BY job_id DESC LIMIT :limit
