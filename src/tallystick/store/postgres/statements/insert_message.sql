-- insert_message: a message for a job that has not ended. No row: it was delivered before, or the job has ended.
INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, payload, due_at, created_at)
SELECT $1::text, job_id, $3::bigint, $4::text, $5::bigint, $6::text, $7::text, $8::bigint, $9::bigint
  FROM jobs
 WHERE job_id = $2 AND completed_at IS NULL
ON CONFLICT (guid) DO NOTHING
