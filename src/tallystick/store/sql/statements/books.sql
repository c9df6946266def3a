-- books: a page of what jobs claim about their own history, newest first, without their payloads.
-- takes: before text, limit int
SELECT @names(Book) FROM job_books WHERE job_id < :before ORDER BY job_id DESC LIMIT :limit
