-- drop_inboxes: what nobody took is acknowledged without effect when its job ends. A turn drops only what names an
-- activity of the turn that is over: a signal waits for a wait of its name, in whatever turn that comes.
-- $1 a list of job, two messages to keep, and whether signals go too; $2 wall time if it is not this server's.
UPDATE messages
   SET acked_at = store_ms($2::bigint)
 WHERE guid = ANY (ARRAY(
         SELECT unread.guid
           FROM jsonb_array_elements($1::jsonb) AS r
          CROSS JOIN unnest(ARRAY['start', 'timer', 'child', 'result', 'resume',
                                  CASE WHEN (r ->> 3)::boolean THEN 'signal' END]) AS one (kind)
          CROSS JOIN LATERAL (
                SELECT m.guid
                  FROM messages AS m
                 WHERE m.job_id = r ->> 0 AND m.kind = one.kind AND m.acked_at IS NULL
                OFFSET 0) AS unread
          WHERE unread.guid <> r ->> 1 AND unread.guid <> r ->> 2))
