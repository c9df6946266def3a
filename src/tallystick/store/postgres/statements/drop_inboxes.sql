-- drop_inboxes: what was not taken is acknowledged without effect when its job ends. A turn drops only what names an
-- activity of the turn that is over: a signal waits for a wait of its name, in whatever turn that comes.
-- $1 a list of job, two messages to keep, and whether signals go too; $2 wall time if it is not this server's.
UPDATE messages
   SET acked_at = store_ms($2::bigint)
 WHERE guid = ANY (ARRAY(
         SELECT unread.guid
           FROM jsonb_array_elements($1::jsonb) AS r
          CROSS JOIN LATERAL (
                SELECT m.guid
                  FROM messages AS m
                 WHERE (r ->> 3)::boolean AND m.job_id = r ->> 0 AND m.acked_at IS NULL
                UNION ALL
                SELECT m.guid
                  FROM unnest(ARRAY['start', 'timer', 'child', 'result', 'resume']) AS one (kind)
                 CROSS JOIN LATERAL (
                       SELECT guid
                         FROM messages
                        WHERE messages.job_id = r ->> 0 AND messages.kind = one.kind AND messages.acked_at IS NULL
                       OFFSET 0) AS m
                 WHERE NOT (r ->> 3)::boolean) AS unread
          WHERE unread.guid <> r ->> 1 AND unread.guid <> r ->> 2))
