-- stale_reports: how many reports of each attempt were refused.
SELECT job_id, attempt, count(*) FROM stale_reports GROUP BY job_id, attempt
