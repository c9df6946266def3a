-- move_effects: effects as decisions want them, guarded by their revisions, and the attempts at them: at their end, or with the lease
-- of a further call (else null). It fails unless all were there.
-- takes: list jsonb, epoch text, lease_now int, count int
-- each: EffectRow, before bigint, lease_owner text, lease_ms bigint
WITH listed AS MATERIALIZED (
  SELECT @each(r) FROM jsonb_array_elements(:list) AS r
), moved AS (
  UPDATE effect_keys
     SET state = listed.state, phase = listed.phase, outcome = listed.outcome, result = listed.result, error = listed.error,
         lease_id = listed.lease_id, calls = listed.calls, probes = listed.probes, due_at = listed.due_at, doubt = listed.doubt,
         called_at = listed.called_at, ended_at = listed.ended_at, ended_by = listed.ended_by, rev = listed.rev,
         kept = listed.kept
    FROM listed
   WHERE effect_keys.exec_id = listed.exec_id AND effect_keys.rev = listed.before
  RETURNING effect_keys.exec_id
), held AS (
  UPDATE attempts
     SET status = listed.state, lease_id = listed.lease_id, finished_at = listed.ended_at,
         lease_owner = coalesce(listed.lease_owner, attempts.lease_owner),
         lease_epoch = CASE WHEN listed.lease_ms IS NULL THEN attempts.lease_epoch ELSE :epoch END,
         lease_expires_at = coalesce(store_ms(:lease_now) + listed.lease_ms, attempts.lease_expires_at)
    FROM listed
    JOIN moved ON moved.exec_id = listed.exec_id
   WHERE attempts.job_id = listed.job_id AND attempts.unit = listed.unit AND attempts.attempt = listed.attempt
     AND attempts.status = 'COMMITTED'
  RETURNING 1
)
SELECT expect_rows('move_effects', (SELECT count(*) FROM held), :count)
