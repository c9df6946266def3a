-- drop_messages: what nobody took is acknowledged without effect when the job ends. A turn drops only what names an
-- activity of the turn that is over (?5 = 0): a signal waits for a wait of its name, in whatever turn that comes.
-- Nothing changes unless the job is open and in this attempt.
UPDATE messages INDEXED BY messages_waiting
   SET acked_at = ?4
 WHERE job_id = ?1 AND kind IN ('start', 'timer', 'child', 'result', 'resume', CASE WHEN ?5 THEN 'signal' END)
   AND acked_at IS NULL AND guid <> ?3
   AND EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = messages.job_id AND j.attempt = ?2 AND j.completed_at IS NULL)
