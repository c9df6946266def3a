-- open_more: obligations are added to a running job, or closed while the one that drives the segment stays open.
UPDATE jobs SET semaphore = semaphore + $3, rev = rev + 1 WHERE job_id = $1 AND attempt = $2 AND state IN ('IN_PROGRESS', 'CANCELLING')
