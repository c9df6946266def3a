-- claimable_chosen: these jobs, as a claim reads them; they were found to be claimable in this transaction.
-- takes: jobs list, attempts_default
SELECT @part(claimed, jobs) FROM jobs WHERE job_id IN :jobs
