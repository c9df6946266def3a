-- newest: the newest arrival in the inbox of a job, if there is one.
LEFT JOIN LATERAL (
     SELECT m.arrived, m.created_at
       FROM messages AS m
      WHERE m.job_id = @job.job_id AND m.acked_at IS NULL AND m.arrived >= 0
      ORDER BY m.arrived DESC
      LIMIT 1) AS newest ON true
