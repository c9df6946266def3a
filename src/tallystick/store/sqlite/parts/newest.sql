-- newest: the newest arrival in the inbox of a job, if there is one.
LEFT JOIN messages AS newest
  ON newest.guid = (SELECT m.guid
                      FROM messages AS m INDEXED BY messages_inbox
                     WHERE m.job_id = @job.job_id AND m.acked_at IS NULL
                     ORDER BY m.arrived DESC
                     LIMIT 1)
