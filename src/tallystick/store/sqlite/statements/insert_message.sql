-- insert_message: a message for a job that has not ended. No row: it was delivered before, or the job has ended.
INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, payload, due_at, created_at)
SELECT ?1, job_id, ?3, ?4, ?5, ?6, ?7, ?8, ?9
  FROM jobs
 WHERE job_id = ?2 AND completed_at IS NULL
ON CONFLICT (guid) DO NOTHING
