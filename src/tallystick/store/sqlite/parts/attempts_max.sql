-- attempts_max: how many attempts a job may lose in a row, by its options; null if they cannot be read.
CASE WHEN json_valid(@job.options) THEN @job.options ->> 'attempts_max' END
