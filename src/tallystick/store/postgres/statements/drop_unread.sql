-- drop_unread: messages that no wait asked for are acknowledged without effect, of those listed jobs that have ended in
-- the listed attempt.
-- Mostly there is none, which is seen first. Runs after `end_jobs`, in a statement of its own, so that it sees what was delivered before the job's row was had.
-- $1 the list, $2 wall time if it is not this server's.
WITH unread AS MATERIALIZED (
  SELECT m.message_at
    FROM jsonb_array_elements($1::jsonb) AS r
   CROSS JOIN LATERAL (
         SELECT 1 FROM messages AS m WHERE m.job_id = r ->> 0 AND m.acked_at IS NULL LIMIT 1) AS likely
   CROSS JOIN LATERAL (
         SELECT j.job_id
           FROM jobs AS j
          WHERE j.job_id = r ->> 0 AND j.attempt = (r ->> 1)::bigint AND j.completed_at IS NOT NULL
         OFFSET 0) AS ended
   CROSS JOIN LATERAL (
         SELECT m.ctid AS message_at
           FROM messages AS m
          WHERE m.job_id = ended.job_id AND m.acked_at IS NULL
            FOR NO KEY UPDATE) AS m
)
UPDATE messages SET acked_at = store_ms($2::bigint) FROM unread WHERE messages.ctid = unread.message_at
