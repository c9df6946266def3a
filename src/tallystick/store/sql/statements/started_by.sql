-- started_by: a page of the jobs that a job has started, detached ones too, in the order of their identifiers.
-- takes: job_id text, after text, limit int
SELECT job_id FROM jobs WHERE parent_job_id = :job_id AND job_id > :after ORDER BY job_id LIMIT :limit
