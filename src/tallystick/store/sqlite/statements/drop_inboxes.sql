-- drop_inboxes: what was not taken is acknowledged without effect when the job ends. A turn drops only what names an
-- activity of the turn that is over (?5 = 0): a signal waits for a wait of its name, in whatever turn that comes.
UPDATE messages INDEXED BY messages_waiting
   SET acked_at = ?4
 WHERE job_id = ?1 AND kind IN ('start', 'timer', 'child', 'result', 'resume', CASE WHEN ?5 THEN 'signal' END)
   AND acked_at IS NULL AND guid <> ?2 AND guid <> ?3
