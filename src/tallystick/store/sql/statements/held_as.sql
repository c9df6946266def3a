-- held_as: jobs that wait for a person for one reason, oldest first.
-- takes: hold text, limit int
SELECT job_id FROM jobs WHERE hold IS NOT NULL AND hold = :hold ORDER BY job_id LIMIT :limit
