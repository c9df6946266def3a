-- acts_told: what acts of one kind on a job say.
-- takes: job_id text, verb text
SELECT told FROM acts WHERE name = :job_id AND about = 'job' AND verb = :verb ORDER BY seq
