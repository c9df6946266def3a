-- drop_messages: what nobody took is acknowledged without effect when the job ends. A turn drops only what names an
-- activity of the turn that is over ($5 = 0): a signal waits for a wait of its name, in whatever turn that comes.
-- Nothing changes unless the job is open and in this attempt.
UPDATE messages
   SET acked_at = $4
 WHERE guid = ANY (ARRAY(
         SELECT unread.guid
           FROM unnest(ARRAY['start', 'timer', 'child', 'result', 'resume',
                             CASE WHEN $5::bigint = 1 THEN 'signal' END]) AS one (kind)
          CROSS JOIN LATERAL (
                SELECT m.guid
                  FROM messages AS m
                 WHERE m.job_id = $1 AND m.kind = one.kind AND m.acked_at IS NULL
                OFFSET 0) AS unread
          WHERE unread.guid <> $3))
   AND EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = messages.job_id AND j.attempt = $2 AND j.completed_at IS NULL)
