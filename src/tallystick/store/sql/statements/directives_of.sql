-- directives_of: every directive of a job, in the order of their identifiers, and when each was last written.
-- takes: job_id text
SELECT @names(OutboxRow), updated_at FROM outbox WHERE job_id = :job_id ORDER BY outbox_id
