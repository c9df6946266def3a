-- forks: jobs that began with another's records, and jobs whose place another has taken.
SELECT job_id, retry_of, retried_as FROM jobs WHERE retry_of IS NOT NULL OR retried_as IS NOT NULL
