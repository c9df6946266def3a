-- insert_stale_reports: keep a refused report for people; it changed nothing else.
-- takes: at, job_id, attempt, lease_id, report
INSERT INTO stale_reports (@takes) VALUES (:at, :job_id, :attempt, :lease_id, :report)
