-- set_driver: the message because of which an attempt was opened; part of its claim.
UPDATE attempts SET guid = $3 WHERE job_id = $1 AND unit = '' AND attempt = $2::bigint AND status = 'IN_PROGRESS'
