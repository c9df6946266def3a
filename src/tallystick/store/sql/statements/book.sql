-- book: what one job claims about its own history.
-- takes: job_id text
SELECT @names(Book) FROM job_books WHERE job_id = :job_id
