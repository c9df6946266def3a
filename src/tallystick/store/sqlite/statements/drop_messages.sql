-- drop_messages: what nobody took is acknowledged without effect when the job ends; a job that turns (?4) keeps its signals.
UPDATE messages SET acked_at = ?3 WHERE job_id = ?1 AND acked_at IS NULL AND guid <> ?2 AND (?4 = 0 OR kind <> 'signal')
