-- heads: a page of jobs by their identifiers, each with the end of its chain as its row has it, when it was made and has ended.
-- takes: after text, limit int
SELECT job_id, head_n, head_hash, created_at, completed_at FROM jobs WHERE job_id > :after ORDER BY job_id LIMIT :limit
