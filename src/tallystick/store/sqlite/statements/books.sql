-- books: a page of what jobs claim about their own history, newest first, without their payloads.
SELECT * FROM job_books
 WHERE job_id < coalesce(?1, char(1114111))
 ORDER BY job_id DESC
 LIMIT ?2
