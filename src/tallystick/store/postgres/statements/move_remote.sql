-- move_remote: rows of remote steps as decisions about their jobs want them, guarded by their revisions. Results and errors come with
-- their ends. It fails unless all were there.
-- takes: list jsonb, wall int, count int
-- each: job_id text, dimension bigint, name text, occurrence bigint, before bigint, RemoteStep
WITH step AS MATERIALIZED (
  SELECT @each(r) FROM jsonb_array_elements(:list) AS r
), at_steps AS MATERIALIZED (
  SELECT step.*, s.step_at
    FROM step
   CROSS JOIN LATERAL (
         SELECT steps.ctid AS step_at
           FROM steps
          WHERE steps.job_id = step.job_id AND steps.dimension = step.dimension AND steps.name = step.name
            AND steps.occurrence = step.occurrence AND steps.rev = step.before AND steps.kind IN ('remote', 'protocol')
         OFFSET 0) AS s
), moved AS (
  UPDATE steps
     SET state = at_steps.state, ledger = at_steps.ledger, rev = at_steps.rev, attempt_no = at_steps.attempt_no, lease_id = at_steps.lease_id,
         lease_expires_at = at_steps.lease_expires_at, acked_at = at_steps.acked_at, answers = at_steps.answers, input_ref = at_steps.input_ref,
         workspace_ref = at_steps.workspace_ref, output_ref = at_steps.output_ref, resolved_mode = at_steps.resolved_mode, lane = at_steps.lane,
         routing_key_used = at_steps.routing_key_used, decision_source = at_steps.decision_source, decision_reason = at_steps.decision_reason,
         last_error_code = at_steps.last_error_code, last_error_message = at_steps.last_error_message,
         updated_at = :wall
    FROM at_steps
   WHERE steps.ctid = at_steps.step_at
  RETURNING 1
)
SELECT expect_rows('move_remote', (SELECT count(*) FROM moved), :count)
