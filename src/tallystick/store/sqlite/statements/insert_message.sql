-- insert_message: a message for a job that has not ended, behind all that wait in its inbox: `arrived` counts them, and a
-- clock that was set back puts nothing before what came earlier. No row: it was delivered before, or the job has ended.
INSERT INTO messages (guid, job_id, dimension, name, occurrence, kind, payload, due_at, created_at, arrived)
SELECT ?1, job_id, ?3, ?4, ?5, ?6, ?7, ?8,
       max(?9, coalesce((SELECT m.created_at
                           FROM messages AS m INDEXED BY messages_inbox
                          WHERE m.job_id = ?2 AND m.acked_at IS NULL
                          ORDER BY m.arrived DESC
                          LIMIT 1), 0)),
       1 + coalesce((SELECT max(m.arrived)
                       FROM messages AS m INDEXED BY messages_inbox
                      WHERE m.job_id = ?2 AND m.acked_at IS NULL), 0)
  FROM jobs
 WHERE job_id = ?2 AND completed_at IS NULL
ON CONFLICT (guid) DO NOTHING
