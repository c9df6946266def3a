-- open_wait: the digits of an activity of the job that waits for a message, if there is one.
-- takes: job_id text, dimension int, name text, occurrence int
SELECT ledger FROM steps WHERE job_id = :job_id AND dimension = :dimension AND name = :name AND occurrence = :occurrence
