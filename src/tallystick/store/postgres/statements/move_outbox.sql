-- move_outbox: directives as decisions want them, guarded by their revisions. It fails unless all were there.
-- takes: list jsonb, wall int, count int
-- each: OutboxRow, before bigint
WITH listed AS MATERIALIZED (
  SELECT @each(r) FROM jsonb_array_elements(:list) AS r
), at_rows AS MATERIALIZED (
  SELECT listed.*, o.row_at
    FROM listed
   CROSS JOIN LATERAL (
         SELECT outbox.ctid AS row_at
           FROM outbox
          WHERE outbox.outbox_id = listed.outbox_id AND outbox.rev = listed.before AND outbox.state = 'PENDING'
         OFFSET 0) AS o
), moved AS (
  UPDATE outbox
     SET state = at_rows.state, tries = at_rows.tries, next_try_at = at_rows.next_try_at, sent_at = at_rows.sent_at,
         rev = at_rows.rev, taken_by = at_rows.taken_by, reason = at_rows.reason, updated_at = :wall
    FROM at_rows
   WHERE outbox.ctid = at_rows.row_at
  RETURNING 1
)
SELECT expect_rows('move_outbox', (SELECT count(*) FROM moved), :count)
