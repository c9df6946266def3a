-- drop_words: a turn drops only what names an activity of the turn that is over, all but two messages: a signal waits for a wait
-- of its name, in whatever turn that comes, and none of them is read here.
-- takes: job_id, keep, or_keep, at
UPDATE messages INDEXED BY messages_waiting
   SET acked_at = :at
 WHERE job_id = :job_id AND kind IN ('start', 'timer', 'child', 'result', 'resume') AND acked_at IS NULL
   AND guid <> :keep AND guid <> :or_keep
