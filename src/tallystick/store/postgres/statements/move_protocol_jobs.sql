-- move_protocol_jobs: rows of protocol jobs as decisions want them, guarded by their revisions. It fails unless all were there.
-- takes: list jsonb, wall int, count int
-- each: ProtocolJob, before bigint, head_n bigint, head_hash bytea
WITH job AS MATERIALIZED (
  SELECT @each(r) FROM jsonb_array_elements(:list) AS r
), at_jobs AS MATERIALIZED (
  SELECT job.*, j.job_at
    FROM job
   CROSS JOIN LATERAL (
         SELECT jobs.ctid AS job_at
           FROM jobs
          WHERE jobs.job_id = job.job_id AND jobs.rev = job.before AND jobs.kind = 'protocol'
         OFFSET 0) AS j
), moved AS (
  UPDATE jobs
     SET state = at_jobs.state, rev = at_jobs.rev, semaphore = at_jobs.semaphore, root_ledger = at_jobs.root_ledger,
         current_step_id = at_jobs.current_step_id, current_step_index = at_jobs.current_step_index,
         attempts_total = at_jobs.attempts_total, completed_at = at_jobs.completed_at, result = at_jobs.result,
         error = at_jobs.error, error_code = at_jobs.error_code, error_message = at_jobs.error_message, head_n = at_jobs.head_n,
         head_hash = at_jobs.head_hash, updated_at = :wall, hold = at_jobs.hold,
         hold_reason = CASE WHEN at_jobs.hold IS NOT NULL THEN jobs.hold_reason END
    FROM at_jobs
   WHERE jobs.ctid = at_jobs.job_at
  RETURNING 1
)
SELECT expect_rows('move_protocol_jobs', (SELECT count(*) FROM moved), :count)
