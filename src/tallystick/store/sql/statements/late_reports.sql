-- late_reports: what calls of effects of a job have said too late, oldest first: when, and what.
-- takes: job_id text
SELECT at, report FROM stale_reports WHERE job_id = :job_id AND report LIKE 'EndEffect %' ORDER BY id
