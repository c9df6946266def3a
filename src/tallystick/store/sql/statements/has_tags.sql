-- has_tags: those of the listed tags that a job can be found by.
-- takes: job_id text, tags list
SELECT tag FROM job_tags WHERE job_id = :job_id AND tag IN :tags
