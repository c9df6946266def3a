-- move: rows of jobs, activities and messages as decisions want them, in one statement: step 2 of a message
-- moves a semaphore, its own digits and those of its activity, all or nothing. A row that has `before` is guarded by it:
-- its revision, or its digits; one that has none is new. A semaphore that comes to its threshold must have been said to
-- (`hit`). It fails unless everything changed that was planned.
-- A hold that ends before its hook was called is remembered as missed.
-- takes: jobs jsonb, activities jsonb, messages jsonb, wall int, count int
WITH job AS MATERIALIZED (
  SELECT @read(JobMove, r) FROM jsonb_array_elements(:jobs) AS r
), activity AS MATERIALIZED (
  SELECT @read(ActivityMove, r) FROM jsonb_array_elements(:activities) AS r
), message AS MATERIALIZED (
  SELECT @read(MessageMove, r) FROM jsonb_array_elements(:messages) AS r
), at_jobs AS MATERIALIZED (
  SELECT job.*, j.*
    FROM job
   CROSS JOIN LATERAL (
         SELECT jobs.ctid AS job_at
           FROM jobs
          WHERE jobs.job_id = job.job_id AND jobs.rev = job.before
            AND (jobs.semaphore <> 0 AND job.semaphore = 0) = job.hit
         OFFSET 0) AS j
), moved_jobs AS (
  UPDATE jobs
     SET state = at_jobs.state, attempt = at_jobs.attempt, dimension = at_jobs.dimension, ready_at = at_jobs.ready_at,
         hold = at_jobs.hold, semaphore = at_jobs.semaphore, root_ledger = at_jobs.root_ledger,
         start_ledger = at_jobs.start_ledger, start_acked_at = at_jobs.start_acked_at, cancel_at = at_jobs.cancel_at,
         completed_at = at_jobs.completed_at, rev = at_jobs.rev, head_n = coalesce(at_jobs.head_n, jobs.head_n),
         head_hash = coalesce(at_jobs.head_hash, jobs.head_hash),
         payload = coalesce(at_jobs.payload, jobs.payload), result = coalesce(at_jobs.result, jobs.result),
         error = coalesce(at_jobs.error, jobs.error), error_code = coalesce(at_jobs.error_code, jobs.error_code),
         error_message = coalesce(at_jobs.error_message, jobs.error_message),
         current_step_id = coalesce(at_jobs.current_step_id, jobs.current_step_id),
         hold_reason = CASE WHEN at_jobs.hold IS NOT NULL THEN coalesce(at_jobs.hold_reason, jobs.hold_reason) END,
         updated_at = :wall,
         hook_told = CASE WHEN at_jobs.hold IS NOT NULL THEN jobs.hook_told
                          WHEN jobs.hook_told = 'missed' OR (jobs.hold IS NOT NULL AND jobs.hook_due IS NOT NULL) THEN 'missed' END,
         hook_at = CASE WHEN at_jobs.hold IS NOT NULL OR jobs.hook_due IS NOT NULL THEN jobs.hook_at END,
         hook_tries = CASE WHEN at_jobs.hold IS NOT NULL OR jobs.hook_due IS NOT NULL THEN jobs.hook_tries ELSE 0 END
    FROM at_jobs
   WHERE jobs.ctid = at_jobs.job_at
  RETURNING 1
), at_activities AS MATERIALIZED (
  SELECT activity.*, s.step_at
    FROM activity
   CROSS JOIN LATERAL (
         SELECT steps.ctid AS step_at, steps.rev, steps.semaphore, steps.threshold
           FROM steps
          WHERE steps.job_id = activity.job_id AND steps.dimension = activity.dimension AND steps.name = activity.name
            AND steps.occurrence = activity.occurrence
         OFFSET 0) AS s
   WHERE s.rev = activity.before
     AND (s.semaphore IS NULL OR (s.semaphore <> s.threshold AND activity.semaphore = s.threshold) = activity.hit)
), moved_activities AS (
  UPDATE steps
     SET state = at_activities.state, ledger = at_activities.ledger, rev = at_activities.rev, attempt = at_activities.attempt,
         semaphore = at_activities.semaphore, failed = at_activities.failed,
         completed_at = coalesce(at_activities.completed_at, steps.completed_at),
         lease_expires_at = CASE WHEN at_activities.completed_at IS NULL THEN steps.lease_expires_at END,
         result = coalesce(at_activities.result, steps.result), error = coalesce(at_activities.error, steps.error),
         n = coalesce(at_activities.n, steps.n),
         prev_hash = coalesce(at_activities.prev_hash, steps.prev_hash),
         event_hash = coalesce(at_activities.event_hash, steps.event_hash)
    FROM at_activities
   WHERE steps.ctid = at_activities.step_at
  RETURNING 1
), new_activities AS (
  INSERT INTO steps (@names(Activity), created_at, completed_at, result, error, n, prev_hash, event_hash)
  SELECT @fields(Activity), created_at, completed_at, result, error, n, prev_hash, event_hash
    FROM activity
   WHERE before IS NULL
     AND (SELECT count(*) FROM events WHERE events.job_id = activity.job_id AND events.n = activity.n) = 0
  RETURNING 1
), at_messages AS MATERIALIZED (
  SELECT message.*, m.message_at
    FROM message
   CROSS JOIN LATERAL (
         SELECT messages.ctid AS message_at, messages.job_id, messages.ledger, messages.acked_at
           FROM messages
          WHERE messages.guid = message.guid
         OFFSET 0) AS m
   WHERE m.job_id = message.job_id AND m.ledger = message.before AND m.acked_at IS NULL
), moved_messages AS (
  UPDATE messages
     SET ledger = at_messages.ledger, redeliveries = at_messages.redeliveries, acked_at = at_messages.acked_at,
         dimension = at_messages.dimension, occurrence = at_messages.occurrence
    FROM at_messages
   WHERE messages.ctid = at_messages.message_at
  RETURNING 1
), new_messages AS (
  INSERT INTO messages (@names(Message)) SELECT @fields(Message) FROM message WHERE before IS NULL
  RETURNING 1
)
SELECT expect_rows('move',
                   (SELECT count(*) FROM moved_jobs) + (SELECT count(*) FROM moved_activities)
                   + (SELECT count(*) FROM new_activities) + (SELECT count(*) FROM moved_messages)
                   + (SELECT count(*) FROM new_messages),
                   :count)
