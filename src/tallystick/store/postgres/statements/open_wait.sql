-- open_wait: the digits of an activity of the job that waits for a message, if there is one.
SELECT ledger FROM steps WHERE job_id = $1 AND dimension = $2 AND name = $3 AND occurrence = $4
