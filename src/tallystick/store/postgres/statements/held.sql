-- held: the newest jobs that wait for a person, as `books` shows them. Reads the whole table of jobs.
SELECT * FROM job_books
 WHERE hold IS NOT NULL
 ORDER BY job_id DESC
 LIMIT $1::bigint
