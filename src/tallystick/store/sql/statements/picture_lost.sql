-- picture_lost: the attempts of these jobs that came to a key which another had: what each names, its job, its step.
-- takes: jobs list
SELECT guid, job_id, unit FROM attempts WHERE job_id IN :jobs AND unit <> '' AND reason = 'DUPLICATE_COMMIT'
