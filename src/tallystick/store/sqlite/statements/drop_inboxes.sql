-- drop_inboxes: what nobody took is acknowledged without effect when its job ends, all but two messages.
-- takes: job_id, keep, or_keep, at
-- row: (:job_id, :keep, :or_keep, :at)
UPDATE messages INDEXED BY messages_inbox
   SET acked_at = given.at
  FROM @given
 WHERE messages.job_id = given.job_id AND messages.acked_at IS NULL AND messages.guid <> given.keep
   AND messages.guid <> given.or_keep
