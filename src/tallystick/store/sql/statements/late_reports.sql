-- late_reports: what calls of effects of a job have said too late, oldest first: when, and what. Of other requests about
-- effects the name alone is kept.
-- takes: job_id text
SELECT at, report FROM stale_reports WHERE job_id = :job_id AND report LIKE '%Effect %' ORDER BY id
