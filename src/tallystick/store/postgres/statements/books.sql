-- books: a page of what jobs claim about their own history, newest first, without their payloads.
SELECT * FROM job_books
 WHERE ($1::text IS NULL OR job_id < $1)
 ORDER BY job_id DESC
 LIMIT $2::bigint
