-- attempts_max: how many attempts a job may lose in a row, by its options; null if they cannot be read.
substring(@job.options FROM '"attempts_max":(\d{1,9})')::bigint
