-- picture_directives: what of these jobs is not out yet; one directive for each at most.
-- takes: jobs list
SELECT @names(OutboxRow) FROM outbox WHERE job_id IN :jobs AND state = 'PENDING'
