-- open_activities: how many activities of a job are still open.
SELECT count(*) FROM steps WHERE job_id = $1 AND completed_at IS NULL
