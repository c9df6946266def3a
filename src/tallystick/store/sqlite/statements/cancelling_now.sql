-- cancelling_now: which jobs are asked to end; almost always none, found in an index of its own.
SELECT job_id FROM jobs WHERE state = 'CANCELLING'
