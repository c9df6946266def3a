-- newest_birth: when the youngest job was born, by the clock of the store; 0 without jobs.
SELECT coalesce(max(created_at), 0) FROM jobs
