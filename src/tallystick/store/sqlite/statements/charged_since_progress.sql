-- charged_since_progress: how many charged attempts a job has had since it last made progress.
SELECT count(*) FROM futile_attempts WHERE job_id = ?1
