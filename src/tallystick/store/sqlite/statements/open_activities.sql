-- open_activities: what a job's semaphore says and what it has open; they are the same, or the books are wrong.
SELECT semaphore, open_activities FROM job_books WHERE job_id = ?1
