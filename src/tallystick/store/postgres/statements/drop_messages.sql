-- drop_messages: what nobody took is acknowledged without effect when the job ends. A turn drops only what names an
-- activity of the turn that is over ($4 = 0): a signal waits for a wait of its name, in whatever turn that comes.
UPDATE messages
   SET acked_at = $3
 WHERE job_id = $1 AND acked_at IS NULL AND guid <> $2 AND (kind <> 'signal' OR $4::bigint = 1)
