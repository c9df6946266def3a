-- book: what one job claims about its own history.
SELECT * FROM job_books
 WHERE job_id = ?1
