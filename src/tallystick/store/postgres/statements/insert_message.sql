-- insert_message: a message for a job that has not ended, behind all that wait in its inbox: `arrived` counts them, and a
-- clock that was set back puts nothing before what came earlier. Runs with the job's row in hand.
-- No row: it was delivered before, or the job has ended.
INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, payload, due_at, created_at, arrived)
SELECT $1::text, job_id, $3::bigint, $4::text, $5::bigint, $6::text, $7::text, $8::bigint,
       greatest($9::bigint, (SELECT m.created_at
                               FROM messages AS m
                              WHERE m.job_id = $2 AND m.acked_at IS NULL AND m.arrived >= 0
                              ORDER BY m.arrived DESC
                              LIMIT 1)),
       1 + coalesce((SELECT max(m.arrived)
                       FROM messages AS m
                      WHERE m.job_id = $2 AND m.acked_at IS NULL AND m.arrived >= 0), 0)
  FROM jobs
 WHERE job_id = $2 AND completed_at IS NULL
ON CONFLICT (guid) DO NOTHING
