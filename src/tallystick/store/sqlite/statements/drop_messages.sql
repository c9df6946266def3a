-- drop_messages: what nobody took is acknowledged without effect when the job ends.
UPDATE messages SET acked_at = ?3 WHERE job_id = ?1 AND acked_at IS NULL AND guid <> ?2
