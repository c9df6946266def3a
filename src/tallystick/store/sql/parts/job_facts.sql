-- job_facts: the facts of a job that decisions read, with its newest arrival as in the part `newest`.
@job.job_id, @job.state, @job.attempt, @job.dimension, @job.ready_at, @job.hold, @job.semaphore, @job.root_ledger,
@job.start_ledger, @job.start_acked_at, @job.cancel_at, @job.completed_at, @job.rev, @job.ledger_form, @job.parent_job_id,
@job.parent_step, coalesce(newest.arrived, 0), coalesce(newest.created_at, 0), @job.deadline_at, @job.error_code
