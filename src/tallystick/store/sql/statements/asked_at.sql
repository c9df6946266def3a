-- asked_at: when a person first asked a job to end. No row: no act says so.
-- takes: job_id text
SELECT at FROM acts WHERE name = :job_id AND about = 'job' AND verb = 'cancel' AND who <> '' ORDER BY seq LIMIT 1
