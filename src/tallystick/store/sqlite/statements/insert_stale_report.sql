-- insert_stale_report: keep a refused report for people; it changed nothing else.
INSERT INTO stale_reports (at, job_id, attempt, lease_id, report) VALUES (?1, ?2, ?3, ?4, ?5)
